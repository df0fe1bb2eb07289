"""Machine code that does not depend on what else the process has compiled or loaded.

A compiled function that calls another one gets a copy of it, which LLVM optimises once more together with the caller:
sums may then be added in another order. Numba leaves these copies weak symbols, and of all symbols of one name in a
process the first serves everybody. So a step gave other bits in the process that compiled it (the callee's own code was
first) than in one that loaded it from the cache (the caller's copy was), and others again when the callee had been
called before. Here each function keeps to its own copies.
"""

from __future__ import annotations

from llvmlite import binding  # type: ignore[import-untyped]
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target


class OwnCopiesLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The machine code of one compiled function, in which the copies of what it calls are local symbols."""

    def _finalize_final_module(self) -> None:
        """Called when the module is optimised, before it becomes machine code; also for what was loaded from disk."""
        copies = [
            function
            for function in self._final_module.functions
            if not function.is_declaration and function.linkage == binding.Linkage.linkonce_odr
        ]
        if copies:
            self._shared_module = self._module_to_link()
            for function in copies:
                function.linkage = binding.Linkage.internal
        super()._finalize_final_module()

    def _module_to_link(self) -> binding.ModuleRef:
        """What callers of this function link, as Numba makes it: all functions are weak symbols there."""
        module = self._final_module.clone()
        for function in module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = binding.Linkage.linkonce_odr
        return module


def keep_to_own_copies() -> None:
    """Compile all functions of this process so. Those compiled before stay as they are."""
    cpu_target.target_context.codegen()._library_class = OwnCopiesLibrary
