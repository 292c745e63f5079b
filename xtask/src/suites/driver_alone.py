"""A pytest plugin for cuda.core: what it takes from other libraries, it takes from the driver.

- Programs that are compiled to machine code are compiled to PTX, which is what the software driver
  runs.  The object that a test gets still calls itself a cubin; the driver tells PTX by its text.
- `Device.sync` calls the CUDA runtime, which does not start; its driver call does the same.
- The number of devices comes from NVML; the driver knows it as well.
"""

import cuda.core
from cuda.bindings import driver
from cuda.core import Device, ObjectCode, system
from cuda.core._utils.cuda_utils import handle_return


class Program(cuda.core.Program):
    def compile(self, target_type, *arguments, **options):
        if str(target_type) != "cubin" or str(self.backend).lower() != "nvrtc":
            return super().compile(target_type, *arguments, **options)
        ptx = super().compile("ptx", *arguments, **options)
        return ObjectCode.from_cubin(ptx.code, name=ptx.name, symbol_mapping=ptx.symbol_mapping)


def sync(self):
    self._check_context_initialized()
    handle_return(driver.cuCtxSynchronize())


def get_num_devices():
    return handle_return(driver.cuDeviceGetCount())


cuda.core.Program = Program
Device.sync = sync
system.get_num_devices = get_num_devices
