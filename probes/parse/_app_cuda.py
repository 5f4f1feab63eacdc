"""CUDA's error names, numbers and messages, and which kind of trouble each one is.

The runtime and the driver API share their numbers since CUDA 10.1; the rows that print a
message of their own are listed. Source: the enums cudaError and CUresult of the CUDA
toolkit reference.
"""

from __future__ import annotations

from knowledge.lazy import lazy
from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class CudaStatus:
    """One row of CUDA's error tables."""

    kind: str
    code: int
    runtime: str  # name in the runtime API
    driver: str  # name in the driver API
    text: str  # what cudaGetErrorString says, lower case
    # True when the failed kernel reports it at a later call of the host
    asynchronous: bool = False


OUT_OF_MEMORY = "out_of_memory"

# kind | number | runtime | driver | message | a: reported later than its cause
_TABLE = """
invalid_argument|1|cudaErrorInvalidValue|CUDA_ERROR_INVALID_VALUE|invalid argument
out_of_memory|2|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|out of memory
initialization_error|3|cudaErrorInitializationError|CUDA_ERROR_NOT_INITIALIZED|initialization error
shutting_down|4|cudaErrorCudartUnloading|CUDA_ERROR_DEINITIALIZED|driver shutting down
invalid_configuration|9|cudaErrorInvalidConfiguration||invalid configuration argument
invalid_argument|11|cudaErrorInvalidPitchValue||invalid pitch argument
invalid_argument|17|cudaErrorInvalidDevicePointer||invalid device pointer
invalid_argument|21|cudaErrorInvalidMemcpyDirection||invalid copy direction for memcpy
insufficient_driver|35|cudaErrorInsufficientDriver||cuda driver version is insufficient for cuda runtime version
device_unavailable|46|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|all cuda-capable devices are busy or unavailable
no_kernel_image|98|cudaErrorInvalidDeviceFunction||invalid device function
no_device|100|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE|no cuda-capable device is detected
invalid_device_ordinal|101|cudaErrorInvalidDevice|CUDA_ERROR_INVALID_DEVICE|invalid device ordinal
no_kernel_image|200|cudaErrorInvalidKernelImage|CUDA_ERROR_INVALID_IMAGE|device kernel image is invalid
invalid_context|201|cudaErrorDeviceUninitialized|CUDA_ERROR_INVALID_CONTEXT|invalid device context
map_failed|205|cudaErrorMapBufferObjectFailed|CUDA_ERROR_MAP_FAILED|mapping of buffer object failed
no_kernel_image|209|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|no kernel image is available for execution on the device
ecc_uncorrectable|214|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE|uncorrectable ecc error encountered|a
peer_access|217|cudaErrorPeerAccessUnsupported|CUDA_ERROR_PEER_ACCESS_UNSUPPORTED|peer access is not supported between these two devices
no_kernel_image|218|cudaErrorInvalidPtx|CUDA_ERROR_INVALID_PTX|a ptx jit compilation failed
nvlink_error|220|cudaErrorNvlinkUncorrectable|CUDA_ERROR_NVLINK_UNCORRECTABLE|uncorrectable nvlink error detected during the execution|a
no_kernel_image|221|cudaErrorJitCompilerNotFound|CUDA_ERROR_JIT_COMPILER_NOT_FOUND|ptx jit compiler library not found
no_kernel_image|222|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|the provided ptx was compiled with an unsupported toolchain
contained|226|cudaErrorContained|CUDA_ERROR_CONTAINED|invalid access of peer gpu memory over nvlink or a hardware error|a
no_kernel_image|301|cudaErrorFileNotFound|CUDA_ERROR_FILE_NOT_FOUND|file not found
shared_object|302|cudaErrorSharedObjectSymbolNotFound|CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND|shared object symbol not found
shared_object|303|cudaErrorSharedObjectInitFailed|CUDA_ERROR_SHARED_OBJECT_INIT_FAILED|shared object initialization failed
os_call_failed|304|cudaErrorOperatingSystem|CUDA_ERROR_OPERATING_SYSTEM|os call failed or operation not supported on this os
invalid_handle|400|cudaErrorInvalidResourceHandle|CUDA_ERROR_INVALID_HANDLE|invalid resource handle
illegal_state|401|cudaErrorIllegalState|CUDA_ERROR_ILLEGAL_STATE|the operation cannot be performed in the present state
symbol_not_found|500|cudaErrorSymbolNotFound|CUDA_ERROR_NOT_FOUND|named symbol not found
not_ready|600|cudaErrorNotReady|CUDA_ERROR_NOT_READY|device not ready
illegal_access|700|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|an illegal memory access was encountered|a
out_of_resources|701|cudaErrorLaunchOutOfResources|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES|too many resources requested for launch
launch_timeout|702|cudaErrorLaunchTimeout|CUDA_ERROR_LAUNCH_TIMEOUT|the launch timed out and was terminated|a
peer_access|704|cudaErrorPeerAccessAlreadyEnabled|CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED|peer access is already enabled
peer_access|705|cudaErrorPeerAccessNotEnabled|CUDA_ERROR_PEER_ACCESS_NOT_ENABLED|peer access has not been enabled
invalid_context|709|cudaErrorContextIsDestroyed|CUDA_ERROR_CONTEXT_IS_DESTROYED|context is destroyed
device_assert|710|cudaErrorAssert|CUDA_ERROR_ASSERT|device-side assert triggered|a
peer_access|711|cudaErrorTooManyPeers|CUDA_ERROR_TOO_MANY_PEERS|peer mapping resources exhausted
host_memory_registered|712|cudaErrorHostMemoryAlreadyRegistered|CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED|part or all of the requested memory range is already mapped
host_memory_registered|713|cudaErrorHostMemoryNotRegistered|CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED|pointer does not correspond to a registered memory region
hardware_stack_error|714|cudaErrorHardwareStackError|CUDA_ERROR_HARDWARE_STACK_ERROR|hardware stack error|a
illegal_instruction|715|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION|an illegal instruction was encountered|a
misaligned_address|716|cudaErrorMisalignedAddress|CUDA_ERROR_MISALIGNED_ADDRESS|misaligned address|a
invalid_address_space|717|cudaErrorInvalidAddressSpace|CUDA_ERROR_INVALID_ADDRESS_SPACE|operation not supported on global/shared address space|a
invalid_pc|718|cudaErrorInvalidPc|CUDA_ERROR_INVALID_PC|invalid program counter|a
launch_failure|719|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED|unspecified launch failure|a
invalid_configuration|720|cudaErrorCooperativeLaunchTooLarge|CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE|too many blocks in cooperative launch
tensor_memory_leak|721|cudaErrorTensorMemoryLeak|CUDA_ERROR_TENSOR_MEMORY_LEAK|kernel exited without freeing all of its tensor memory|a
not_permitted|800|cudaErrorNotPermitted|CUDA_ERROR_NOT_PERMITTED|operation not permitted
not_supported|801|cudaErrorNotSupported|CUDA_ERROR_NOT_SUPPORTED|operation not supported
system_not_ready|802|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|system not yet initialized
system_driver_mismatch|803|cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|system has unsupported display driver / cuda driver combination
compat_not_supported|804|cudaErrorCompatNotSupportedOnDevice|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE|forward compatibility was attempted on non supported hw
mps|805|cudaErrorMpsConnectionFailed|CUDA_ERROR_MPS_CONNECTION_FAILED|mps client failed to connect to the mps control daemon or the mps server
mps|806|cudaErrorMpsRpcFailure|CUDA_ERROR_MPS_RPC_FAILURE|the remote procedural call between the mps server and the mps client failed
mps|807|cudaErrorMpsServerNotReady|CUDA_ERROR_MPS_SERVER_NOT_READY|mps server is not ready to accept new mps client requests
mps|808|cudaErrorMpsMaxClientsReached|CUDA_ERROR_MPS_MAX_CLIENTS_REACHED|the hardware resources required to create mps client have been exhausted
mps|809|cudaErrorMpsMaxConnectionsReached|CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED|the hardware resources required to support device connections have been exhausted
mps|810|cudaErrorMpsClientTerminated|CUDA_ERROR_MPS_CLIENT_TERMINATED|the mps client has been terminated by the server
stream_capture|900|cudaErrorStreamCaptureUnsupported|CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED|operation not permitted when stream is capturing
stream_capture|901|cudaErrorStreamCaptureInvalidated|CUDA_ERROR_STREAM_CAPTURE_INVALIDATED|operation failed due to a previous error during capture
stream_capture|904|cudaErrorStreamCaptureUnjoined|CUDA_ERROR_STREAM_CAPTURE_UNJOINED|capturing stream has unjoined work
stream_capture|906|cudaErrorStreamCaptureImplicit|CUDA_ERROR_STREAM_CAPTURE_IMPLICIT|operation would make the legacy stream depend on a capturing blocking stream
unknown|999|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|unknown error|a
"""


def _row(line: str) -> CudaStatus:
    kind, code, runtime, driver, text, *late = line.split("|")
    return CudaStatus(kind, int(code), runtime, driver, text, bool(late))


STATUSES = tuple(_row(line) for line in _TABLE.strip().splitlines())
_BY_CODE = {status.code: status for status in STATUSES}
_BY_NAME = {name: status for status in STATUSES for name in (status.runtime, status.driver) if name}
# "operation not permitted" begins "operation not permitted when stream is capturing"
_LONGEST_FIRST = tuple(sorted(STATUSES, key=lambda status: -len(status.text)))
# messages that only CUDA prints; "invalid argument" or "file not found" alone is anybody's
_ONLY_CUDA = tuple(
    s for s in _LONGEST_FIRST if len(s.text) > 20 or s.text in ("misaligned address", "hardware stack error")
)

_NAME = lazy(r"\b(cudaError[A-Z]\w{2,60}|CUDA_ERROR_[A-Z_]{3,60})")
_LIBRARY_NAME = lazy(
    r"\b(CUBLAS|CUBLASLT|CUDNN|CUSOLVER|CUSPARSE|CUFFT|CURAND|NVRTC|HIPBLAS|ROCBLAS|MIOPEN)_(?:STATUS_|ERROR_)?([A-Z_]{3,60})\b"
)
# CUDA error: text | CUDA driver error: text | HIP error: text | Triton Error [CUDA]: text | CUDA Runtime API error 700: text
# CUDA failure 719: text | CUDA error 700 at f.cu:12: text | Cuda Runtime (text) | GPUassert: text | Error 802: text
_SAID = lazy(
    r"(?:(?:CUDA|HIP|Cuda|cuda)(?: (?:driver|runtime|Runtime|Driver)(?: API)?)? (?:[Ee]rror|failure)\b:?"
    r"|Triton Error \[(?:CUDA|HIP)\]:|GPUassert:|Cuda Runtime \(|\bError(?= \d{1,3}: )|failed call to cuInit: UNKNOWN ERROR \()"
    r" ?(?:code ?= ?)?(\d{1,4})?\b ?(?:at [^:]{1,200}:\d{1,7}:?)?:? ?(.{0,300})"
)
# cuInit(0) returned 802 | cudaMalloc failed with error 2, and no "cudaMemcpy gives 12 GB/s"
# unknown error initializing cuda driver library /usr/lib/libcuda.so.550.54.15: cuda driver library init failure: 999 (ollama)
_RETURNED = lazy(
    r"(?:\bcu(?:da)?[A-Z]\w{2,40}(?:\([^()]{0,40}\))? (?:return(?:s|ed|ing)|fail(?:s|ed) with|gives|gave|返回|报)|\bcuda driver library init failure:) ?(?:error )?(?:code )?(\d{1,3})\b(?!\.\d| ?(?:%|(?i:[kmgt]i?b)|[mun]?s\b))"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says about a CUDA error."""

    kind: str
    code: int | None = None
    name: str = ""  # cudaErrorIllegalAddress, CUBLAS_STATUS_ALLOC_FAILED
    asynchronous: bool = False


def by_code(code: int) -> CudaStatus | None:
    """The row of CUDA's tables with number `code`."""
    return _BY_CODE.get(code)


def classify(text: str) -> Reading | None:
    """The CUDA error that `text` names, by name, by message or by number; None when it names none.

    A CUDA context that is not in the table gives kind ``other``: it was an error all the same.
    """
    if found := _NAME.search(text):
        status = _BY_NAME.get(found[1])
        return _of(status, found[1]) if status else Reading("other", name=found[1])
    if found := _LIBRARY_NAME.search(text):
        library, reason = found[1].lower().removesuffix("lt"), found[2].lower()
        if reason != "success":
            return Reading(f"{library}_{reason}", name=found[0], asynchronous="alloc" not in reason)
    if phrase := _phrase(text):
        return phrase
    lowered = text.lower()
    for status in _ONLY_CUDA:
        if status.text in lowered:
            return _of(status)
    if (found := _RETURNED.search(text)) and (returned := _BY_CODE.get(int(found[1]))):
        return _of(returned)
    if found := _SAID.search(text):
        return _said(found[0], found[1], found[2].lower())
    return None


def _said(whole: str, code: str | None, message: str) -> Reading | None:
    status = _BY_CODE.get(int(code)) if code else None
    if whole.startswith("Error "):  # anybody prints "Error 404: not found"; torch quotes CUDA's own words
        return _of(status) if status and message.startswith(status.text) else None
    if status:
        return _of(status)
    for status in _LONGEST_FIRST:
        if message.startswith(status.text):
            return _of(status)
    return Reading("other", int(code) if code else None)


def _of(status: CudaStatus, name: str = "") -> Reading:
    return Reading(status.kind, status.code, name or status.runtime, status.asynchronous)


# What nvidia-smi prints within the output of a job, as a line of its own; alone it is an output that is read as such.
SMI = lazy(
    r"\s{0,8}(?:No devices were found|NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\b.{0,120})\s{0,8}"
)
# what frameworks say in words of their own
_PHRASES = (
    (lazy(r"^\s{0,8}NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\b"), "no_driver"),
    (lazy(r"^\s{0,8}No devices were found\s{0,8}$"), "no_device"),
    (
        # rocminfo: ROCk module is NOT loaded, possibly no GPU devices
        lazy(
            r"Found no NVIDIA driver on your system|libcuda\.so(?:\.1)?: cannot open|No NVIDIA GPU detected|ROCk module is NOT loaded"
        ),
        "no_driver",
    ),
    (
        lazy(
            r"No CUDA GPUs are available|torch\.cuda\.is_available\(\) is False|no ROCm-capable device is detected|no CUDA GPU[s]? (?:is|are) (?:available|found|detected)"
        ),
        "no_device",
    ),
    # ROCm: Memory access fault by GPU node-4 (Agent handle: 0x55d0c1f0) on address 0x7f1c2e400000. Reason: Page not present or ...
    (
        lazy(r"Memory access fault by GPU node-\d{1,4}\b|HSA_STATUS_ERROR_MEMORY_(?:APERTURE_VIOLATION|FAULT)"),
        "illegal_access",
    ),
    # ROCm: HW Exception by GPU node-1 (Agent handle: 0x5600d3d6b0e0) reason :GPU Hang
    (lazy(r"(?i)HW Exception by GPU node-\d{1,4}\b.{0,80}?reason ?:? ?GPU Hang"), "gpu_hang"),
    # HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016
    (lazy(r"HSA_STATUS_ERROR_EXCEPTION|HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"), "launch_failure"),
    (lazy(r"NVIDIA driver on your system is too old"), "insufficient_driver"),
    (lazy(r"CUDA unknown error - this may be due to"), "unknown"),
    (lazy(r"with CUDA capability sm_\d{2,3}a? is not compatible with the current PyTorch"), "no_kernel_image"),
    (lazy(r"out of resources?: shared memory, Required"), "out_of_resources"),
    (lazy(r"Torch not compiled with CUDA enabled"), "not_compiled"),
)


def _phrase(text: str) -> Reading | None:
    for pattern, kind in _PHRASES:
        if pattern.search(text):
            status = next((s for s in STATUSES if s.kind == kind), None)
            return Reading(kind, status.code if status else None)
    return None
