"""A pytest plugin: programs that are compiled to machine code are compiled to PTX.

The software driver runs PTX alone.  The object that a test gets still calls itself a cubin; the
driver tells PTX by its text.
"""

import cuda.core
from cuda.core import ObjectCode


class Program(cuda.core.Program):
    def compile(self, target_type, *arguments, **options):
        if str(target_type) != "cubin" or str(self.backend).lower() != "nvrtc":
            return super().compile(target_type, *arguments, **options)
        ptx = super().compile("ptx", *arguments, **options)
        return ObjectCode.from_cubin(ptx.code, name=ptx.name, symbol_mapping=ptx.symbol_mapping)


cuda.core.Program = Program
