"""What `nvidia-smi -q -x` writes, in the shapes of healthy and of broken GPUs: for unit tests, and for a made-up driver on a real node."""

ECC = (
    "sram_correctable",
    "sram_uncorrectable_parity",
    "sram_uncorrectable_secded",
    "dram_correctable",
    "dram_uncorrectable",
)
#: What nvidia-smi says of a lost GPU, in the words of drivers from 460 to 580.
SENTENCES = [
    "Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error",
    "Unable to determine the device handle for GPU0000:25:00.0: Unknown Error",
    "Unable to determine the device handle for GPU 0000:04:00.0: GPU is lost.  Reboot the system to recover this GPU",
    "No devices were found",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
    "Failed to initialize NVML: Driver/library version mismatch",
]


def gpu(number, **changed):
    """One GPU in the shape in which an H100's driver 570 writes it; a value of None leaves the element out."""
    said = {
        "product_name": "NVIDIA H100 80GB HBM3",
        "minor_number": number,
        "gpu_recovery_action": "None",
        "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
        "pci/pci_gpu_link_info/link_widths/current_link_width": "16x",
        "pci/replay_counter": 0,
        "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown": "Not Active",
        "clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown": "Not Active",
        "utilization/gpu_util": "98 %",
        "ecc_mode/current_ecc": "Enabled",
        **{f"ecc_errors/volatile/{each}": 0 for each in ECC},
        "ecc_errors/aggregate/dram_uncorrectable": 7,
        "retired_pages/pending_retirement": "N/A",
        "remapped_rows/remapped_row_pending": "No",
        "remapped_rows/remapped_row_failure": "No",
        "temperature/gpu_temp": "61 C",
        "temperature/gpu_temp_tlimit": "26 C",
        "clocks/sm_clock": "1755 MHz",
        "max_clocks/sm_clock": "1980 MHz",
        "fabric/state": "Completed",
        "fabric/status": "Success",
        **changed,
    }
    tree = {}
    for path, value in said.items():
        *above, last = path.split("/")
        here = tree
        for name in above:
            here = here.setdefault(name, {})
        if value is not None:
            here[last] = value
    return f'<gpu id="00000000:{0x19 + number:02X}:00.0">{xml(tree)}</gpu>'


def xml(tree):
    return "".join(f"<{name}>{xml(each) if isinstance(each, dict) else each}</{name}>\n" for name, each in tree.items())


def log(*gpus):
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
    return f"{head}<nvidia_smi_log><driver_version>570.158.01</driver_version>{''.join(gpus)}</nvidia_smi_log>"
