#include "measure/profile_sweep.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/precision.h"
#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "telemetry/format.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr int64_t kMostRows = 200;

bool counts(const std::string& name) {
  return name == "threads" || name == "batch";
}

void check_value(const std::string& name, const std::string& value) {
  const std::vector<std::string>& types = model_types();
  VT_REQUIRE(name != "dtype" || std::find(types.begin(), types.end(), value) != types.end(),
             ErrorKind::kUsage, "--sweep dtype expects one of %s, not %s", join(types, ", ").c_str(),
             quoted(value).c_str());
  if (name == "parallel") parse_parallel(value, '+', "--sweep parallel");
  const auto number = parse_integer(value);
  const bool wrong = value.empty() || (counts(name) && (!number || *number < 1 || *number > 65536));
  VT_REQUIRE(!wrong, ErrorKind::kUsage, "--sweep %s expects %s, not %s", name.c_str(),
             counts(name) ? "numbers from 1 to 65536" : "values", quoted(value).c_str());
}

SweepAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  SweepAxis axis{text.substr(0, equals), {}};
  if (equals != std::string::npos)
    for (const std::string_view value : split(std::string_view(text).substr(equals + 1), ','))
      axis.values.emplace_back(value);
  const std::vector<std::string> known = {"threads", "parallel", "batch", "dtype"};
  if (std::find(known.begin(), known.end(), axis.name) == known.end() || axis.values.empty())
    throw Error(ErrorKind::kUsage, strf("--sweep expects NAME=VALUES, not %s", quoted(text).c_str()),
                did_you_mean(
                    axis.name, known, "",
                    "--sweep threads=1,2,4, --sweep parallel=heads,rows,heads+rows,all, --sweep batch=1,8 or "
                    "--sweep dtype=f32,bf16"));
  for (const std::string& value : axis.values) {
    check_value(axis.name, value);
    VT_REQUIRE(std::count(axis.values.begin(), axis.values.end(), value) == 1, ErrorKind::kUsage,
               "--sweep %s has %s twice", axis.name.c_str(), quoted(value).c_str());
  }
  return axis;
}

template <class Target>
void set_parallel(const std::string& value, Target& target) {
  const ParallelKinds kinds = parse_parallel(value, '+', "--sweep parallel");
  target.parallel_heads = kinds.heads;
  target.parallel_rows = kinds.rows;
  target.parallel_softmax = kinds.softmax;
}

int64_t number_of(const std::string& value) {
  return parse_integer(value).value_or(0);
}
}  // namespace

ParallelKinds parse_parallel(const std::string& list, char separator, const char* option) {
  ParallelKinds kinds;
  for (const std::string_view part : split(list, separator)) {
    const std::string word(part);
    const bool all = word == "all", none = word == "none";
    if (!all && !none && word != "heads" && word != "rows" && word != "softmax")
      throw Error(ErrorKind::kUsage, strf("%s does not know %s", option, quoted(word).c_str()),
                  did_you_mean(word, {"heads", "rows", "softmax", "all", "none"}, "",
                               strf("any of heads%crows%csoftmax, or none", separator, separator)));
    kinds.heads |= all || word == "heads";
    kinds.rows |= all || word == "rows";
    kinds.softmax |= all || word == "softmax";
  }
  return kinds;
}

std::vector<SweepAxis> parse_sweeps(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  int64_t rows = 1;
  for (const std::string& text : texts) {
    SweepAxis axis = parse_axis(text);
    for (const SweepAxis& other : axes)
      VT_REQUIRE(other.name != axis.name, ErrorKind::kUsage,
                 "--sweep %s is there twice: name all values in one", axis.name.c_str());
    rows *= static_cast<int64_t>(axis.values.size());
    VT_REQUIRE(rows <= kMostRows, ErrorKind::kUsage, "the sweeps multiply to more than %lld measurements",
               static_cast<long long>(kMostRows));
    axes.push_back(std::move(axis));
  }
  return axes;
}

void apply(const std::vector<SweepAxis>& axes, const SweepValues& values, const std::string& device,
           EngineOptions& engine) {
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].name == "threads") engine.threads = static_cast<int>(number_of(values[a]));
    if (axes[a].name == "batch") engine.batch = number_of(values[a]);
    if (axes[a].name == "parallel") set_parallel(values[a], engine);
    if (axes[a].name == "dtype") set_precision(values[a], device, engine, "--");
  }
}

void apply(const std::vector<SweepAxis>& axes, const SweepValues& values, TrainConfig& config,
           DeviceInfo& device) {
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].name == "threads") device.threads = static_cast<int>(number_of(values[a]));
    if (axes[a].name == "parallel") set_parallel(values[a], device);
    if (axes[a].name == "batch") {
      config.train.micro_batch = number_of(values[a]);
      config.train.batch = config.train.accumulation = 0;
    }
    VT_REQUIRE(axes[a].name != "dtype", ErrorKind::kUsage,
               "--sweep dtype is for an inference; of training one --dtype at a time");
  }
}

Sweep run_sweep(const std::vector<SweepAxis>& axes,
                const std::function<Profile(const SweepValues&)>& measure) {
  Sweep sweep{axes, {}};
  size_t all = axes.empty() ? 0 : 1;
  for (const SweepAxis& axis : axes) all *= axis.values.size();
  for (size_t number = 0; number < all; ++number) {
    SweepValues values(axes.size());
    size_t left = number;
    for (size_t a = axes.size(); a-- > 0; left /= axes[a].values.size())
      values[a] = axes[a].values[left % axes[a].values.size()];
    sweep.rows.push_back({values, measure(values)});
  }
  return sweep;
}

nlohmann::ordered_json to_json(const Sweep& sweep) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Sweep::Row& row : sweep.rows) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (size_t a = 0; a < sweep.axes.size(); ++a) json[sweep.axes[a].name] = row.values[a];
    const Spread& s = row.profile.seconds;
    json.update({{"ms_median", s.median * 1e3},
                 {"ms_min", s.min * 1e3},
                 {"ms_p90", s.p90 * 1e3},
                 {"runs", s.count},
                 {"images_per_second", static_cast<double>(row.profile.batch) / s.median},
                 {"parts", to_json(row.profile.parts)}});
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace vitrail
