// The version of the tree; setup.py states the same.
#ifndef TENSORFLOW_CORE_PUBLIC_VERSION_H_
#define TENSORFLOW_CORE_PUBLIC_VERSION_H_

#define TF_VERSION_STRING "1.12.0"

#endif  // TENSORFLOW_CORE_PUBLIC_VERSION_H_
