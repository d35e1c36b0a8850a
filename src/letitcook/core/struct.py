"""Structs that kernels take by reference: one pointer, however many arrays they hold.

Numba takes a NamedTuple by value, as every address, length and stride of every array in it. A learner of eighty arrays
is then six hundred arguments of every kernel on the way, which took longer to compile than what the kernels do. A
`Struct` is written and read like a NamedTuple, in Python and in kernels, but a kernel gets the address of a block of
words that says where everything is::

    number          one word: its value
    array           one word for its address, then one for each length
    kernel          one word: its address
    inner struct    one word: the address of its block

What a struct holds never changes, only what is in its arrays, and it keeps them alive as long as it lives. So kernels
may read the block once and for all, and need not count references.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, dataclass_transform

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, lower_getattr_generic, register_model, typeof_impl, unbox
from numba.np import numpy_support
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

from letitcook.core.pointer import Pointer
from letitcook.errors import SettingError

_WORD = ir.IntType(64)


@dataclass_transform(frozen_default=True)
class Struct:
    """Base class of structs; a subclass lists its fields, each a number, a C-contiguous array, a `Pointer` or a struct.

    >>> class Pair(Struct):
    ...     scale: float
    ...     values: NDArray[np.float64]
    >>> from numba import njit
    >>> @njit
    ... def scaled(pair, i):
    ...     return pair.scale * pair.values[i]
    >>> scaled(Pair(2.0, np.arange(3.0)), 1)
    2.0
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)
        typeof_impl.register(cls)(_typeof)

    def __post_init__(self) -> None:
        for name, value in self._asdict().items():
            if isinstance(value, np.ndarray) and not (value.flags.c_contiguous and value.flags.aligned):
                raise SettingError(f"{type(self).__name__}.{name} has to be a C-contiguous array")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._asdict().values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self)  # without the block, which holds addresses

    def _asdict(self) -> dict[str, Any]:
        """Return what it holds, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _replace(self, **changes: Any) -> Self:
        """Return the same with other values of some fields."""
        return replace(self, **changes)  # type: ignore[type-var]

    @cached_property
    def _block(self) -> NDArray[np.int64]:
        words: list[int] = []
        for value in self:
            if isinstance(value, Struct):
                words.append(value._address)
            elif isinstance(value, Pointer):
                words.append(value.address)
            elif isinstance(value, np.ndarray):
                words += [value.ctypes.data, *value.shape]
            else:
                words.append(int(np.array(value, dtype=_number(value)).view(np.int64)))
        return np.array(words, dtype=np.int64)

    @cached_property
    def _address(self) -> int:
        """Where kernels find the block."""
        return int(self._block.ctypes.data)

    @cached_property
    def _struct_type(self) -> StructType:
        return StructType(type(self).__qualname__, tuple((k, _field_type(v)) for k, v in self._asdict().items()))


def _number(value: object) -> type[np.generic]:
    """Return how a number stands in its word."""
    return np.float64 if isinstance(value, float) else np.int64


# --- what Numba has to know ---


class StructType(types.Type):  # type: ignore[misc]
    """The type of a struct in kernels: its name, and the names and types of its fields."""

    def __init__(self, struct: str, members: tuple[tuple[str, types.Type], ...]) -> None:
        self.struct, self.members = struct, members
        digest = hashlib.sha256(repr([(name, str(kind)) for name, kind in members]).encode()).hexdigest()
        super().__init__(name=f"{struct}_{digest[:32]}")  # types are equal where their names are


def _typeof(value: Struct, _: object) -> StructType:
    return value._struct_type


def _field_type(value: object) -> types.Type:
    if isinstance(value, Struct):
        return value._struct_type
    if isinstance(value, Pointer):
        return value.type
    if isinstance(value, np.ndarray):
        return types.Array(numpy_support.from_dtype(value.dtype), value.ndim, "C")
    return types.boolean if isinstance(value, bool) else types.float64 if isinstance(value, float) else types.int64


@register_model(StructType)
class _StructModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: StructType) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@unbox(StructType)  # type: ignore[untyped-decorator]
def _unbox(kind: StructType, value: Any, c: Any) -> NativeValue:
    """Read the address of the block; the caller holds the struct as long as the kernel runs."""
    address = c.pyapi.object_getattr_string(value, "_address")
    pointer = c.builder.inttoptr(c.pyapi.long_as_longlong(address), _WORD.as_pointer())
    c.pyapi.decref(address)
    return NativeValue(pointer, is_error=c.pyapi.c_api_error())


@infer_getattr
class _StructAttribute(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> types.Type | None:
        return dict(kind.members).get(name)


@lower_getattr_generic(StructType)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, kind: StructType, block: Any, name: str) -> Any:
    """Return a field: a number, an array that somebody else keeps alive, or the address of an inner struct."""
    at = 0
    for member, field in kind.members:
        if member == name:
            break
        at += 1 + (field.ndim if isinstance(field, types.Array) else 0)

    def word(i: int) -> Any:
        loaded = builder.load(builder.gep(block, [_WORD(i)]))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(field, types.Array):
        return _array(context, builder, field, word(at), [word(at + 1 + d) for d in range(field.ndim)])
    if isinstance(field, StructType):
        return builder.inttoptr(word(at), _WORD.as_pointer())
    if field == types.float64:
        return builder.bitcast(word(at), ir.DoubleType())
    return builder.trunc(word(at), ir.IntType(1)) if field == types.boolean else word(at)


def _array(context: Any, builder: Any, kind: types.Array, address: Any, shape: list[Any]) -> Any:
    """Return the array at an address, without anything to count references in."""
    array = make_array(kind)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [_WORD(itemsize)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=_WORD(itemsize), meminfo=None)
    return array._getvalue()
