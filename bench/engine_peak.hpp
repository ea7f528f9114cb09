#pragma once

/// Keeps the units for fused multiply-adds busy from registers alone; returns the operations done.
/// The caller says what the CPU has.
double peak_work(bool avx512, bool avx2);
