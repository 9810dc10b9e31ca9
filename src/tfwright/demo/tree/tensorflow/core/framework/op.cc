#include "tensorflow/core/framework/op.h"

namespace tensorflow {

std::set<std::string>& RegisteredOps() {
  // Never destroyed: libraries that are loaded later still enter their names.
  static auto* const names = new std::set<std::string>;
  return *names;
}

namespace register_op {

OpDefBuilderReceiver::OpDefBuilderReceiver(const char* name) { RegisteredOps().insert(name); }

}  // namespace register_op
}  // namespace tensorflow
