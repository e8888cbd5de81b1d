// The part of XLA's foreign function interface that a handler needs. It is a versioned C ABI: a
// structure begins with its size, and later versions only append members. So the module needs
// neither the headers of jaxlib nor one binary per version. XLA compares the version when JAX
// registers the handler. https://openxla.org/xla/custom_call
#pragma once

#include <cstddef>
#include <cstdint>

namespace mujacobian::xla {

// The major version of the declarations below, and the minor versions that they are right for.
constexpr int kMajor = 0, kFirstMinor = 0, kLastMinor = 3;

enum ExtensionType : int { kMetadata = 1 };
enum DataType : int { kInt64 = 5, kFloat64 = 12 };
enum AttributeType : int { kScalar = 3 };
enum Stage : int { kExecute = 3 };
enum ErrorCode : int { kInternal = 13 };

struct Extension {
  std::size_t struct_size;
  ExtensionType type;
  Extension* next;
};

struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major, minor;
};

// The beginning of what a handler says about itself when it is registered.
struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;
struct ErrorArguments {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  ErrorCode code;
};

// The beginning of the table of functions.
struct Api {
  std::size_t struct_size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorArguments* arguments);
};

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  DataType type;
  void* data;
  std::int64_t rank;
  const std::int64_t* shape;
};

// Arguments and results; all of them are buffers here.
struct Buffers {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t count;
  const int* types;
  const Buffer* const* items;
};

struct Text {
  const char* data;
  std::size_t size;
};

struct Scalar {
  DataType type;
  const void* value;
};

struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t count;
  const AttributeType* types;
  const Text* const* names;
  const void* const* values;
};

// The beginning of a call.
struct Frame {
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  void* context;
  Stage stage;
  Buffers arguments, results;
  Attributes attributes;
};

using Handler = Error*(Frame*);

}  // namespace mujacobian::xla
