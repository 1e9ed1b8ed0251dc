#include "weir/simulate/report.h"

#include <algorithm>

#include "weir/base/bounds.h"

namespace weir::simulate {

void Timeline::add(Wall time, bool allowed) {
  if (columns_.empty()) start_ = std::chrono::floor<std::chrono::seconds>(time);
  time = std::max(time, start_);
  if (time >= end_ || columns_.empty()) {
    while (time - start_ >= width_ * static_cast<std::int64_t>(bounds::log_plot_columns)) halve();
    columns_.resize(static_cast<std::size_t>((time - start_) / width_) + 1);
    end_ = start_ + width_ * static_cast<std::int64_t>(columns_.size());
  }
  // Most requests belong to the last column.
  const bool last = time >= end_ - width_;
  Column& column = last ? columns_.back() : columns_[static_cast<std::size_t>((time - start_) / width_)];
  ++(allowed ? column.allowed : column.denied);
}

void Timeline::halve() {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column column = columns_[i];
    if (i % 2 == 0) columns_[i / 2] = {};
    columns_[i / 2].allowed += column.allowed;
    columns_[i / 2].denied += column.denied;
  }
  columns_.resize((columns_.size() + 1) / 2);
  width_ *= 2;
}

}  // namespace weir::simulate
