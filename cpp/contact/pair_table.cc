#include "contact/pair_table.h"

#include "contact/agreement.h"

namespace mujacobian {

const PairEntry* find_pair(const ModelView& m, const int geom[2]) {
  const unsigned first = type_bit(m.geom_type[geom[0]]), second = type_bit(m.geom_type[geom[1]]);
  for (const PairEntry& pair : kPairs) {
    if ((pair.first & first) && (pair.second & second)) return &pair;
  }
  return nullptr;
}

bool uses_collider(const ModelView& m, const int geom[2]) {
  if (geom[0] < 0 || geom[1] < 0) return false;
  const PairEntry* pair = find_pair(m, geom);
  return pair && pair->collider;
}

bool is_iterative(const ModelView& m, const ContactView& contact) {
  const int* id = contact.geom.v;
  if (!uses_collider(m, id)) return false;
  auto is_sharp = [&](int geom) {
    const int type = m.geom_type[geom];
    return type == geom::kBox || type == geom::kMesh || type == geom::kHField;
  };
  const bool rounded =
      detection(m, contact) != 0 || m.geom_margin[id[0]] != 0 || m.geom_margin[id[1]] != 0;
  return rounded || !is_sharp(id[0]) || !is_sharp(id[1]);
}

}  // namespace mujacobian
