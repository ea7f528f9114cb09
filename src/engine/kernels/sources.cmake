# Files of one instruction set have its flags, share no inline function with others (a linker could
# keep the copy that an older CPU cannot run), and stand alone. Their products and sums must not be
# fused behind our back: every fused multiply-add is written as one, so that all sets agree.
