// The layout of the public structs against tests/api/layout.txt: a program compiled with other sizes or
// places of fields reads and writes beside them, and no symbol of abi.txt tells. Includes vitrail/ alone.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "source_root.h"

namespace {

struct Anything {
  template <typename T>
  operator T() const;
};

template <typename Struct, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    Struct{(static_cast<void>(I), Anything())...};
  };
}

// How many fields an aggregate has: as many values as may stand between its braces.
template <typename Struct, size_t kMost = 16>
constexpr size_t field_count() {
  if constexpr (kMost == 0 || takes<Struct>(std::make_index_sequence<kMost>()))
    return kMost;
  else
    return field_count<Struct, kMost - 1>();
}

template <typename Struct>
class Layout {
 public:
  explicit Layout(const char* name) {
    text_ << name << ": " << sizeof(Struct) << " bytes, aligned to " << alignof(Struct);
  }
  template <typename Field>
  Layout& has(const char* name, Field Struct::*field) {
    const auto offset =
        reinterpret_cast<const char*>(&(sample_.*field)) - reinterpret_cast<const char*>(&sample_);
    text_ << "\n  " << offset << " " << name << " " << sizeof(Field);
    ++fields_;
    return *this;
  }
  // For what the caller fills in: a field in what was padding before moves nothing, and is garbage there.
  Layout& and_no_more() {
    EXPECT_EQ(fields_, field_count<Struct>()) << text_.str();
    return *this;
  }
  std::string text() const { return text_.str() + "\n"; }

 private:
  Struct sample_ = {};
  std::ostringstream text_;
  size_t fields_ = 0;
};

std::string options_layout() {
  using namespace vitrail;
  return Layout<ModelOptions>("ModelOptions")
             .has("device", &ModelOptions::device)
             .has("dtype", &ModelOptions::dtype)
             .has("threads", &ModelOptions::threads)
             .has("image_size", &ModelOptions::image_size)
             .has("batch", &ModelOptions::batch)
             .has("arch", &ModelOptions::arch)
             .has("image_height", &ModelOptions::image_height)
             .has("image_width", &ModelOptions::image_width)
             .has("upright", &ModelOptions::upright)
             .and_no_more()
             .text() +
         Layout<AttentionOptions>("AttentionOptions")
             .has("method", &AttentionOptions::method)
             .has("layer", &AttentionOptions::layer)
             .and_no_more()
             .text() +
         Layout<TrainOptions>("TrainOptions")
             .has("folder", &TrainOptions::folder)
             .has("device", &TrainOptions::device)
             .has("threads", &TrainOptions::threads)
             .has("resume", &TrainOptions::resume)
             .has("ranks", &TrainOptions::ranks)
             .has("variables", &TrainOptions::variables)
             .and_no_more()
             .text() +
         Layout<TrainCallbacks>("TrainCallbacks")
             .has("on_step", &TrainCallbacks::on_step)
             .has("on_eval", &TrainCallbacks::on_eval)
             .has("on_checkpoint", &TrainCallbacks::on_checkpoint)
             .has("on_event", &TrainCallbacks::on_event)
             .has("on_note", &TrainCallbacks::on_note)
             .and_no_more()
             .text();
}

std::string results_layout() {
  using namespace vitrail;
  return Layout<Prediction>("Prediction")
             .has("index", &Prediction::index)
             .has("label", &Prediction::label)
             .has("probability", &Prediction::probability)
             .text() +
         Layout<RowsOfFloats>("RowsOfFloats")
             .has("count", &RowsOfFloats::count)
             .has("width", &RowsOfFloats::width)
             .has("values", &RowsOfFloats::values)
             .text() +
         Layout<AttentionMap>("AttentionMap")
             .has("name", &AttentionMap::name)
             .has("rows", &AttentionMap::rows)
             .has("columns", &AttentionMap::columns)
             .has("values", &AttentionMap::values)
             .text() +
         Layout<FileResult>("FileResult")
             .has("index", &FileResult::index)
             .has("predictions", &FileResult::predictions)
             .has("values", &FileResult::values)
             .has("error", &FileResult::error)
             .text() +
         Layout<FileAttention>("FileAttention")
             .has("index", &FileAttention::index)
             .has("maps", &FileAttention::maps)
             .has("error", &FileAttention::error)
             .text() +
         Layout<Plan>("Plan")
             .has("memory", &Plan::memory)
             .has("peak_bytes", &Plan::peak_bytes)
             .has("available_bytes", &Plan::available_bytes)
             .has("fits", &Plan::fits)
             .has("batch", &Plan::batch)
             .has("largest_batch", &Plan::largest_batch)
             .has("parameters", &Plan::parameters)
             .has("flops", &Plan::flops)
             .has("seconds", &Plan::seconds)
             .has("device", &Plan::device)
             .has("notes", &Plan::notes)
             .text();
}

std::string reports_layout() {
  using namespace vitrail;
  return Layout<StepReport>("StepReport")
             .has("step", &StepReport::step)
             .has("total_steps", &StepReport::total_steps)
             .has("epoch", &StepReport::epoch)
             .has("loss", &StepReport::loss)
             .has("learning_rate", &StepReport::learning_rate)
             .has("grad_norm", &StepReport::grad_norm)
             .has("images_per_second", &StepReport::images_per_second)
             .has("seconds_left", &StepReport::seconds_left)
             .has("skipped", &StepReport::skipped)
             .text() +
         Layout<EvalReport>("EvalReport")
             .has("step", &EvalReport::step)
             .has("epoch", &EvalReport::epoch)
             .has("loss", &EvalReport::loss)
             .has("top1", &EvalReport::top1)
             .has("top5", &EvalReport::top5)
             .has("mean_ap", &EvalReport::mean_ap)
             .has("macro_f1", &EvalReport::macro_f1)
             .has("count", &EvalReport::count)
             .has("weights", &EvalReport::weights)
             .has("best", &EvalReport::best)
             .text() +
         Layout<TrainEvent>("TrainEvent")
             .has("what", &TrainEvent::what)
             .has("text", &TrainEvent::text)
             .has("step", &TrainEvent::step)
             .text() +
         Layout<TrainResult>("TrainResult")
             .has("finished", &TrainResult::finished)
             .has("reason", &TrainResult::reason)
             .has("step", &TrainResult::step)
             .has("best", &TrainResult::best)
             .text();
}

// The classes a program holds by value, whose fields are their own.
template <typename Class>
std::string size_only(const char* name) {
  return std::string(name) + ": " + std::to_string(sizeof(Class)) + " bytes, aligned to " +
         std::to_string(alignof(Class)) + "\n";
}

TEST(PublicLayout, IsTheStoredOne) {
#if !defined(__x86_64__) || !defined(__GLIBCXX__)
  GTEST_SKIP() << "the stored list is that of libstdc++ on x86-64";
#endif
  const std::string found = options_layout() + results_layout() + reports_layout() +
                            size_only<vitrail::Model>("Model") + size_only<vitrail::ImageView>("ImageView") +
                            size_only<vitrail::Error>("Error");
  std::ifstream file(VT_SOURCE_DIR "/tests/api/layout.txt");
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(found, stored) << "a program compiled before reads other fields: raise the version, then store\n"
                           << found;
}

}  // namespace
