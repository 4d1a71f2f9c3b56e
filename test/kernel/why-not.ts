import { existsSync } from "node:fs";
import { realNft } from "../../src/kernel/nft/nft.ts";

/** Why stories that need the kernel cannot run here; undefined when they can. */
export function whyNoKernel(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  return undefined;
}

const CLANG = ["/usr/bin", "/usr/local/bin"].map((directory) => `${directory}/clang`);

export function whyNoClang(): string | undefined {
  return whyNoKernel() ?? (CLANG.some(existsSync) ? undefined : "needs clang");
}

/** The nftables data plane writes its rules with the library of nftables. */
export function whyNoNftables(): string | undefined {
  const missing = whyNoKernel();
  if (missing) return missing;
  try {
    realNft().close();
    return undefined;
  } catch (error) {
    return `needs nftables: ${(error as Error).message}`;
  }
}

const IPTABLES = ["/usr/sbin", "/usr/bin", "/sbin"].map((directory) => `${directory}/iptables-nft-save`);

/** kube-proxy's rules are written in each of the ways that it knows. */
export function whyNoPacketFilters(): string | undefined {
  return whyNoNftables() ?? (IPTABLES.some(existsSync) ? undefined : "needs iptables");
}
