// SPDX-License-Identifier: Apache-2.0
// The rule of locks: a mutex is never waited for with the GIL held, and the GIL is never taken under a mutex.
//
// Critical sections of this folder touch plain data only: no driver call, no Python object, no wait.
#pragma once
#include <Python.h>

#include <mutex>

namespace pinzk::memory {

// Lets other Python threads run for a scope; does nothing on a thread that does not hold the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// f() under the mutex. Uncontended, the GIL is kept (f is a few dozen instructions); else it is dropped first.
template <class F>
auto locked(std::mutex& mutex, F f) -> decltype(f()) {
  if (mutex.try_lock()) {
    std::lock_guard<std::mutex> lock(mutex, std::adopt_lock);
    return f();
  }
  WithoutGil nogil;  // declared first: the mutex is unlocked before the GIL is asked for again
  std::lock_guard<std::mutex> lock(mutex);
  return f();
}

}  // namespace pinzk::memory
