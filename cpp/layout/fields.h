// The fields of MuJoCo's structs that the core reads, by name and kind. Offsets are not compiled
// in: at import Python finds them in mujoco.introspect for the installed MuJoCo and hands them
// over, so that one binary serves every MuJoCo whose fields still have these names and kinds.
//
// Kinds: SIZE an mjtSize or int, NUM a double, INT an int, FLAG a one-byte boolean, WORD an
// unsigned 64-bit integer; NUMS, INTS, FLAGS, VOID pointers to such; VEC3, INT2, TEXT arrays stored
// inline. Fields marked OPT are absent from some supported versions and read as null or zero there.
#pragma once

#define MUJACOBIAN_OPTION_FIELDS(REQ, OPT) \
  REQ(NUM, timestep)                       \
  REQ(VEC3, gravity)                       \
  REQ(VEC3, wind)                          \
  REQ(NUM, ccd_tolerance)                  \
  REQ(NUM, density)                        \
  REQ(NUM, viscosity)                      \
  REQ(INT, integrator)                     \
  REQ(INT, disableflags)                   \
  REQ(INT, enableflags)                    \
  REQ(INT, disableactuator)                \
  REQ(INT, noslip_iterations)

#define MUJACOBIAN_MODEL_FIELDS(REQ, OPT) \
  REQ(SIZE, nq)                           \
  REQ(SIZE, nv)                           \
  REQ(SIZE, nu)                           \
  REQ(SIZE, na)                           \
  REQ(SIZE, nbody)                        \
  REQ(SIZE, ntree)                        \
  REQ(SIZE, njnt)                         \
  REQ(SIZE, ntendon)                      \
  REQ(SIZE, nactuator)                    \
  REQ(SIZE, nout)                         \
  REQ(SIZE, nsensor)                      \
  REQ(SIZE, nsensordata)                  \
  REQ(SIZE, nflex)                        \
  REQ(SIZE, nplugin)                      \
  REQ(SIZE, nmocap)                       \
  REQ(SIZE, nC)                           \
  REQ(WORD, signature)                    \
  REQ(FLAG, flg_gravcomp)                 \
  REQ(FLAG, flg_surfacevel)               \
  REQ(FLAG, flg_adhesion)                 \
  REQ(NUMS, qpos0)                        \
  REQ(NUMS, qpos_spring)                  \
  REQ(INTS, body_parentid)                \
  REQ(INTS, body_rootid)                  \
  REQ(INTS, body_weldid)                  \
  REQ(INTS, body_jntnum)                  \
  REQ(INTS, body_jntadr)                  \
  REQ(INTS, body_dofnum)                  \
  REQ(INTS, body_dofadr)                  \
  REQ(INTS, body_geomnum)                 \
  REQ(INTS, body_geomadr)                 \
  REQ(NUMS, body_inertia)                 \
  REQ(NUMS, body_mass)                    \
  REQ(NUMS, body_subtreemass)             \
  REQ(NUMS, body_gravcomp)                \
  REQ(INTS, jnt_type)                     \
  REQ(INTS, jnt_qposadr)                  \
  REQ(INTS, jnt_dofadr)                   \
  REQ(INTS, jnt_bodyid)                   \
  REQ(INTS, jnt_actuatorid)               \
  REQ(FLAGS, jnt_actfrclimited)           \
  REQ(FLAGS, jnt_actgravcomp)             \
  REQ(NUMS, jnt_actfrcrange)              \
  REQ(NUMS, jnt_range)                    \
  REQ(NUMS, tendon_range)                 \
  REQ(NUMS, jnt_stiffness)                \
  REQ(NUMS, jnt_stiffnesspoly)            \
  OPT(INTS, jnt_plasticadr)               \
  REQ(INTS, dof_bodyid)                   \
  REQ(INTS, dof_jntid)                    \
  REQ(INTS, dof_parentid)                 \
  REQ(INTS, dof_treeid)                   \
  REQ(NUMS, dof_damping)                  \
  REQ(NUMS, dof_dampingpoly)              \
  REQ(INTS, tree_dofadr)                  \
  REQ(INTS, tree_dofnum)                  \
  REQ(INTS, M_rownnz)                     \
  REQ(INTS, M_rowadr)                     \
  REQ(INTS, M_colind)                     \
  REQ(INTS, site_bodyid)                  \
  REQ(NUMS, site_quat)                    \
  REQ(INTS, geom_type)                    \
  REQ(INTS, geom_bodyid)                  \
  REQ(INTS, geom_dataid)                  \
  REQ(NUMS, geom_rbound)                  \
  REQ(NUMS, geom_size)                    \
  REQ(NUMS, geom_fluid)                   \
  REQ(NUMS, geom_surfacevel)              \
  REQ(INTS, mesh_vertadr)                 \
  REQ(INTS, mesh_vertnum)                 \
  REQ(INTS, mesh_polynum)                 \
  REQ(INTS, mesh_polyadr)                 \
  REQ(NUMS, mesh_polynormal)              \
  REQ(INTS, mesh_polyvertadr)             \
  REQ(INTS, mesh_polyvertnum)             \
  REQ(INTS, mesh_polyvert)                \
  REQ(FLOATS, mesh_vert)                  \
  REQ(INTS, eq_type)                      \
  REQ(INTS, eq_obj1id)                    \
  REQ(INTS, eq_obj2id)                    \
  REQ(INTS, eq_objtype)                   \
  REQ(NUMS, eq_data)                      \
  REQ(NUMS, tendon_length0)               \
  REQ(INTS, tendon_adr)                   \
  REQ(INTS, tendon_num)                   \
  REQ(INTS, tendon_actuatorid)            \
  REQ(FLAGS, tendon_actfrclimited)        \
  REQ(NUMS, tendon_actfrcrange)           \
  REQ(NUMS, tendon_stiffness)             \
  REQ(NUMS, tendon_stiffnesspoly)         \
  REQ(NUMS, tendon_damping)               \
  REQ(NUMS, tendon_dampingpoly)           \
  REQ(NUMS, tendon_armature)              \
  REQ(NUMS, tendon_lengthspring)          \
  OPT(INTS, tendon_plasticadr)            \
  REQ(INTS, wrap_type)                    \
  REQ(INTS, wrap_objid)                   \
  REQ(NUMS, wrap_prm)                     \
  REQ(INTS, ten_J_rownnz)                 \
  REQ(INTS, ten_J_rowadr)                 \
  REQ(INTS, ten_J_colind)                 \
  REQ(INTS, actuator_trntype)             \
  REQ(INTS, actuator_dyntype)             \
  REQ(INTS, actuator_gaintype)            \
  REQ(INTS, actuator_biastype)            \
  REQ(INTS, actuator_trnid)               \
  REQ(INTS, actuator_ctrladr)             \
  REQ(INTS, actuator_ctrlnum)             \
  REQ(INTS, actuator_outadr)              \
  REQ(INTS, actuator_outnum)              \
  REQ(INTS, actuator_actadr)              \
  REQ(INTS, actuator_actnum)              \
  REQ(INTS, actuator_group)               \
  REQ(INTS, actuator_plugin)              \
  REQ(FLAGS, actuator_ctrllimited)        \
  REQ(FLAGS, actuator_forcelimited)       \
  REQ(NUMS, actuator_ctrlrange)           \
  REQ(NUMS, actuator_forcerange)          \
  REQ(NUMS, actuator_gear)                \
  REQ(NUMS, actuator_gainprm)             \
  REQ(NUMS, actuator_biasprm)             \
  REQ(NUMS, actuator_damping)             \
  REQ(NUMS, actuator_dampingpoly)         \
  REQ(NUMS, actuator_armature)            \
  REQ(NUMS, actuator_delay)               \
  REQ(INTS, sensor_type)                  \
  REQ(INTS, sensor_datatype)              \
  REQ(INTS, sensor_needstage)             \
  REQ(INTS, sensor_objtype)               \
  REQ(INTS, sensor_objid)                 \
  REQ(INTS, sensor_reftype)               \
  REQ(INTS, sensor_refid)                 \
  REQ(INTS, sensor_dim)                   \
  REQ(INTS, sensor_adr)                   \
  REQ(INTS, sensor_history)               \
  REQ(NUMS, sensor_cutoff)                \
  REQ(NUMS, sensor_delay)

#define MUJACOBIAN_DATA_FIELDS(REQ, OPT) \
  REQ(SIZE, nefc)                        \
  REQ(SIZE, ncon)                        \
  REQ(WORD, signature)                   \
  REQ(WORD, pstack)                      \
  REQ(WORD, pbase)                       \
  REQ(NUMS, qpos)                        \
  REQ(NUMS, qvel)                        \
  REQ(NUMS, act)                         \
  REQ(NUMS, ctrl)                        \
  REQ(NUMS, qacc)                        \
  REQ(NUMS, qacc_warmstart)              \
  REQ(NUMS, qfrc_applied)                \
  REQ(NUMS, xfrc_applied)                \
  REQ(NUMS, mocap_pos)                   \
  REQ(NUMS, mocap_quat)                  \
  OPT(NUMS, plastic)                     \
  REQ(NUMS, xpos)                        \
  REQ(NUMS, xmat)                        \
  REQ(NUMS, xquat)                       \
  REQ(NUMS, geom_xpos)                   \
  REQ(NUMS, geom_xmat)                   \
  REQ(NUMS, xipos)                       \
  REQ(NUMS, ximat)                       \
  REQ(NUMS, site_xpos)                   \
  REQ(NUMS, site_xmat)                   \
  REQ(NUMS, subtree_com)                 \
  REQ(NUMS, cdof)                        \
  REQ(NUMS, cdof_dot)                    \
  REQ(NUMS, cinert)                      \
  REQ(NUMS, crb)                         \
  REQ(NUMS, cvel)                        \
  REQ(NUMS, M)                           \
  REQ(NUMS, qLD)                         \
  REQ(NUMS, qLDiagInv)                   \
  REQ(NUMS, ten_length)                  \
  REQ(NUMS, ten_velocity)                \
  REQ(NUMS, ten_J)                       \
  REQ(INTS, ten_wrapadr)                 \
  REQ(INTS, wrap_obj)                    \
  REQ(NUMS, wrap_xpos)                   \
  REQ(NUMS, actuator_length)             \
  REQ(NUMS, actuator_velocity)           \
  REQ(INTS, moment_rownnz)               \
  REQ(INTS, moment_rowadr)               \
  REQ(INTS, moment_colind)               \
  REQ(NUMS, qfrc_gravcomp)               \
  REQ(NUMS, actuator_force)              \
  REQ(NUMS, qfrc_actuator)               \
  REQ(NUMS, qfrc_smooth)                 \
  REQ(NUMS, sensordata)                  \
  REQ(INTS, efc_type)                    \
  REQ(INTS, efc_id)                      \
  REQ(NUMS, efc_pos)                     \
  REQ(NUMS, efc_margin)                  \
  REQ(NUMS, efc_frictionloss)            \
  REQ(NUMS, efc_KBIP)                    \
  REQ(NUMS, efc_D)                       \
  REQ(NUMS, efc_R)                       \
  REQ(NUMS, efc_aref)                    \
  REQ(VOID, contact)

#define MUJACOBIAN_CONTACT_FIELDS(REQ, OPT) \
  REQ(NUM, dist)                            \
  REQ(VEC3, pos)                            \
  REQ(NUM9, frame)                          \
  REQ(NUM5, friction)                       \
  REQ(NUM, adhesion)                        \
  REQ(NUM, mu)                              \
  REQ(INT, dim)                             \
  REQ(INT2, geom)                           \
  REQ(INT, efc_address)

#define MUJACOBIAN_LOG_FIELDS(REQ, OPT) \
  REQ(INT, level)                       \
  REQ(TEXT, subject)                    \
  REQ(VOID, func)
