// SPDX-License-Identifier: Apache-2.0
// What the loops need of Python: a look at pending signals, and C++ exceptions turned into Python's.
#pragma once
#include <Python.h>

#include <exception>
#include <new>

#include "parallel.hpp"

namespace pinzk::cpu {

// true if a signal handler raised (Ctrl-C): the Python error is then set on the calling thread. Called without the GIL.
inline bool poll_signals() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool stop = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return stop;
}

// inside a catch block, with the GIL held
inline void translate_exception() {
  try {
    throw;
  } catch (const Interrupted&) {
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

}  // namespace pinzk::cpu
