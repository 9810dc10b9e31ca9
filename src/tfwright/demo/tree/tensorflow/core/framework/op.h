// Operations make themselves known by name when the library that holds them is loaded.
#ifndef TENSORFLOW_CORE_FRAMEWORK_OP_H_
#define TENSORFLOW_CORE_FRAMEWORK_OP_H_

#include <set>
#include <string>

namespace tensorflow {
namespace register_op {

// Enters a name into the registry. Named as in TensorFlow, so that whoever reads the symbols of a
// library sees in the same way whether it registers any operation.
class OpDefBuilderReceiver {
 public:
  explicit OpDefBuilderReceiver(const char* name);
};

}  // namespace register_op

// The names entered so far.
std::set<std::string>& RegisteredOps();

}  // namespace tensorflow

#define REGISTER_OP(name) REGISTER_OP_AT(__COUNTER__, name)
#define REGISTER_OP_AT(number, name) REGISTER_OP_NAMED(number, name)
#define REGISTER_OP_NAMED(number, name) \
  static const ::tensorflow::register_op::OpDefBuilderReceiver register_op_##number(name)

#endif  // TENSORFLOW_CORE_FRAMEWORK_OP_H_
