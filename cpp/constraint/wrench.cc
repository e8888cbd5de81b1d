#include "constraint/wrench.h"

#include "layout/enums.h"

namespace mujacobian {

bool is_point_equality(const ModelView& m, const Block& b) {
  if (b.type != constraint::kEquality) return false;
  return m.eq_type[b.id] == equality::kConnect || m.eq_type[b.id] == equality::kWeld;
}

bool has_wrench(const ModelView& m, const Block& b) {
  return b.geometry || is_point_equality(m, b);
}

BlockWrench block_wrench(const ModelView& m, const DataView& d, const Block& b, Arena& arena) {
  return b.geometry ? contact_wrench(m, b, arena) : point_equality_wrench(m, d, b, arena);
}

}  // namespace mujacobian
