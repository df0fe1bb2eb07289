"""Which number type a model runs in, and what `dtype="auto"` means on this machine."""

from __future__ import annotations

import torch

from engine.model_errors import ModelLoadError

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DTYPES = ("auto", *TORCH_DTYPES, "int4")


def resolve_dtype(requested: str, *, four_bit_weights: bool, checkpoint: str, device: torch.device) -> str:
    """The name of the number type to run in.

    `auto` is, in this order: the weights' own four bits where the CPU has a kernel for them; else bfloat16 where
    the device multiplies it natively and the checkpoint is no more exact; else float32.
    Raises ModelLoadError for a name that does not exist or cannot run here.
    """
    if requested not in DTYPES:
        raise ModelLoadError(f"{requested} is not a number type of this engine; choose one of {', '.join(DTYPES)}.")
    if requested == "int4":
        _refuse_impossible_int4(four_bit_weights, device)
    if requested != "auto":
        return requested
    if four_bit_weights and has_int4_kernel(device):
        return "int4"
    if (four_bit_weights or checkpoint != "float32") and _multiplies_bfloat16(device):
        return "bfloat16"
    return "float32"


def resolve_kv_dtype(requested: str, model_dtype: str) -> torch.dtype:
    """The number type of keys and values. `auto`: the model's own, and bfloat16 beside weights of four bits."""
    if requested != "auto":
        return TORCH_DTYPES[requested]
    return torch.bfloat16 if model_dtype == "int4" else TORCH_DTYPES[model_dtype]


def has_int4_kernel(device: torch.device) -> bool:
    """torch's four-bit product for CPUs is written for AVX2 and AVX-512; elsewhere it runs a slow fallback."""
    if device.type != "cpu":
        return False
    capability: str = torch.backends.cpu.get_cpu_capability()
    return capability in ("AVX2", "AVX512")


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())


def _refuse_impossible_int4(four_bit_weights: bool, device: torch.device) -> None:
    if not four_bit_weights:
        raise ModelLoadError("int4 runs weights that are stored in four bits, which only smollm2-135m-instruct has.")
    if device.type != "cpu":
        raise ModelLoadError(f"int4 runs on the CPU only, and the model is on {device.type}; choose bfloat16 there.")
