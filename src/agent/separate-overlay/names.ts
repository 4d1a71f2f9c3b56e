/** What the overlay leaves in the kernel and on disk, by which it is found again and removed. */
export const SEPARATE_OVERLAY = {
  device: "vxlan.overlay",
  /** Of its routes: another number than the agent's, which sweeps its own. */
  protocol: 81,
  table: "vendor-overlay",
  /** In the run directory, for the agent: the prefix and the MTU of pods. */
  subnetFile: "overlay.env",
} as const;
