// Runs a reference kernel in f64: copies of what it reads, and what it wrote rounded to its own types.
#include <list>
#include <vector>

#include "backend/ref/loops.h"

namespace vitrail::ref {

namespace {

bool all_double(std::span<const TensorView> views) {
  for (const TensorView& view : views)
    if (is_float(view.dtype()) && view.dtype() != DType::kF64) return false;
  return true;
}

// Views in double over copies that this class owns; integer tensors are viewed in place.
class DoubleViews {
 public:
  DoubleViews(std::span<const TensorView> views, bool read) : originals_(views) {
    for (const TensorView& view : views) {
      if (!is_float(view.dtype()) || view.dtype() == DType::kF64) {
        views_.push_back(view);
        continue;
      }
      copies_.emplace_back(static_cast<size_t>(view.desc().elems()));
      std::vector<double>& copy = copies_.back();
      if (read) convert_floats(view.data(), view.dtype(), copy.data(), DType::kF64, copy.size());
      views_.emplace_back(copy.data(), TensorDesc{DType::kF64, view.shape()});
    }
  }
  void write_back(size_t i) const {
    if (views_[i].data() == originals_[i].data()) return;
    convert_floats(views_[i].data(), DType::kF64, originals_[i].data(), originals_[i].dtype(),
                   static_cast<size_t>(originals_[i].desc().elems()));
  }
  std::span<const TensorView> views() const { return views_; }

 private:
  std::span<const TensorView> originals_;
  std::list<std::vector<double>> copies_;
  std::vector<TensorView> views_;
};

}  // namespace

void run_converted(const KernelArgs& args, void (*kernel)(const KernelArgs&)) {
  if (all_double(args.ins) && all_double(args.outs)) return kernel(args);
  const DoubleViews ins(args.ins, true), outs(args.outs, false);
  kernel({args.op, ins.views(), outs.views(), args.scratch, args.context});
  for (size_t i = 0; i < args.outs.size(); ++i) outs.write_back(i);
  for (int i : args.op.updates()) ins.write_back(static_cast<size_t>(i));
}

}  // namespace vitrail::ref
