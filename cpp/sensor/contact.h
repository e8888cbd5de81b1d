// The contacts that touch and contact sensors report. These contacts and their order are part of
// the branch.
#pragma once

#include "sensor/sensing.h"

namespace mujacobian {

// Returns whether a point is inside the volume of a site.
bool inside_site(const ModelView& m, const DataView& d, int site, Vec3 point);

// Returns whether a touch sensor reports the contact of block k.
bool is_touched(const Sensing& s, int sensor, int k);

// A contact that a contact sensor reports.
struct MatchedContact {
  int id;
  bool flip;         // the sensor reports it from the other side
  double criterion;  // by which a reduction sorts the contacts

  const Block* block;              // exists also for a contact without constraint rows
  int index;                       // of the block in the state; -1: the contact has no rows
  const ContactVariation* change;  // one per dof of the block
};

// The first row of each field of a slot.
struct ContactSlot {
  static constexpr int kFields = 9;
  int start[kFields];  // -1: not reported
  int size;
};

// The report of a contact sensor: contacts one by one in slots, or the net force of all.
struct ContactReport {
  ContactSlot slot;
  bool net;
  MatchedContact* contact;
  int count;
};

ContactReport report_contacts(Sensing& s, int sensor);

// Returns whether a contact sensor reports the net force of its contacts.
bool reports_net(const ModelView& m, int sensor);

}  // namespace mujacobian
