"""Kernels that other kernels call by their address.

A kernel that calls another by its name gets a copy of the other's machine code, and of all that the other calls, and
the copy is optimised once more; through five levels a matrix product is compiled five times. A kernel that calls by
address is compiled without what it calls. Which kernel it is can be chosen while the program runs, so that what a
setting does not need is not compiled at all. A call costs a few nanoseconds, and nothing is inlined: right between
large kernels, wrong inside a hot loop.
"""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import NativeValue, lower_builtin, register_model, typeof_impl, unbox


class Pointer:
    """The address of a kernel that was compiled for arguments of these Numba types.

    >>> from numba import njit
    >>> @njit
    ... def twice(x):
    ...     return 2 * x
    >>> @njit
    ... def called(kernel, x):
    ...     return call(kernel, (x,))
    >>> called(Pointer(twice, types.int64), 21)
    42
    """

    def __init__(self, kernel: Any, *arguments: types.Type) -> None:
        self.kernel = kernel  # machine code lives as long as its kernel
        self.type, self.address = PointerType(types.none, arguments), 0
        if config.DISABLE_JIT:
            return
        kernel.compile(arguments)
        found = kernel.overloads[arguments]
        self.type = PointerType(found.signature.return_type, arguments)
        self.address = int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))

    @classmethod
    def unused(cls, result: types.Type, *arguments: types.Type) -> Pointer:
        """Return a pointer of that type that nobody calls: what the settings turn off need not be compiled."""
        pointer = cls.__new__(cls)
        pointer.kernel, pointer.type, pointer.address = None, PointerType(result, arguments), 0
        return pointer

    @classmethod
    def where(cls, wanted: bool, kernel: Any, result: types.Type, *arguments: types.Type) -> Pointer:
        """Return the address of a kernel that returns `result` where it is wanted, else a pointer that is not used."""
        return cls(kernel, *arguments) if wanted else cls.unused(result, *arguments)


class PointerType(types.Type):  # type: ignore[misc]
    """The type of a pointer in kernels: what the kernel returns and takes."""

    def __init__(self, result: types.Type, arguments: tuple[types.Type, ...]) -> None:
        self.result, self.arguments = result, arguments
        super().__init__(name=f"Pointer({result}, {arguments})")


@typeof_impl.register(Pointer)  # type: ignore[untyped-decorator]
def _typeof(pointer: Pointer, _: object) -> PointerType:
    return pointer.type


@register_model(PointerType)
class _PointerModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: PointerType) -> None:
        super().__init__(manager, kind, cgutils.intp_t)


@unbox(PointerType)  # type: ignore[untyped-decorator]
def _unbox(kind: PointerType, pointer: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(pointer, "address")
    value = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(value, is_error=c.pyapi.c_api_error())


def call(pointer: Pointer, arguments: tuple[Any, ...]) -> Any:
    """Call the kernel at a pointer with a tuple of arguments."""
    return pointer.kernel(*arguments)


@infer_global(call)
class _Call(AbstractTemplate):  # type: ignore[misc]
    def generic(self, given: tuple[types.Type, ...], _: object) -> Any:
        pointer, arguments = given
        if not isinstance(pointer, PointerType) or len(arguments) != len(pointer.arguments):
            return None
        for kind, taken in zip(arguments, pointer.arguments, strict=True):
            if self.context.can_convert(kind, taken) is None:
                return None
        return signature(pointer.result, pointer, arguments)


@lower_builtin(call, PointerType, types.BaseTuple)  # type: ignore[untyped-decorator]
def _lower_call(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    pointer, arguments = sig.args
    address, packed = values
    given = zip(cgutils.unpack_tuple(builder, packed), arguments, pointer.arguments, strict=True)
    passed = [context.cast(builder, value, kind, taken) for value, kind, taken in given]
    convention = context.call_conv
    function_type = convention.get_function_type(pointer.result, pointer.arguments)
    function = builder.inttoptr(address, function_type.as_pointer())
    status, result = convention.call_function(builder, function, pointer.result, pointer.arguments, passed)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return result
