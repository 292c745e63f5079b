//! A kernel that multiplies.

/// Its PTX.
pub(crate) const SCALE: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry scale(.param .u32 n, .param .u32 factor, .param .u64 from, .param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [factor];
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r6, 4;
    add.u64 %rd6, %rd3, %rd5;
    add.u64 %rd7, %rd4, %rd5;
    ld.global.u32 %r7, [%rd6];
    mul.lo.u32 %r7, %r7, %r2;
    st.global.u32 [%rd7], %r7;
DONE:
    ret;
}";
