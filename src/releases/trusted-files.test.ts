import { describe, expect, it } from "vitest";
import { digestOf } from "./open-release-files.ts";
import { type ManifestTrust, trustedFiles } from "./trusted-files.ts";

const files = { from: "there", read: async (name: string) => `kind: ${name}\n` };
const PIN = digestOf("kind: a.yaml\n");
const read = async (url: string, trust: ManifestTrust) => await trustedFiles(files, url, trust).read("a.yaml");

describe("files of an address", () => {
  it.each<[string, string, ManifestTrust]>([
    ["https with its digest", "https://example.com/v3", { sha256: [PIN] }],
    ["https with its digest in the address", `https://example.com/v3#sha256=${PIN.slice("sha256:".length)}`, {}],
    [
      "one of several digests",
      "https://example.com/v3",
      { sha256: ["0".repeat(64), PIN.toUpperCase().replace("SHA", "sha")] },
    ],
    ["a file of the user's own", "file:///srv/v3", {}],
    ["anything, when the user says so", "http://example.com/v3", { insecure: true }],
  ])("are taken: %s", async (_, url, trust) => {
    expect(await read(url, trust)).toBe("kind: a.yaml\n");
  });

  it.each<[string, string, ManifestTrust, string]>([
    ["http", "http://example.com/v3", {}, "MANIFEST_NOT_PINNED"],
    ["http, though with a digest", "http://example.com/v3", { sha256: [PIN] }, "MANIFEST_NOT_PINNED"],
    ["https without a digest", "https://example.com/v3", {}, "MANIFEST_NOT_PINNED"],
    ["another file than was pinned", "https://example.com/v3", { sha256: ["0".repeat(64)] }, "MANIFEST_OTHER_DIGEST"],
    [
      "another file, insecure or not",
      "http://x/v3",
      { sha256: ["0".repeat(64)], insecure: true },
      "MANIFEST_OTHER_DIGEST",
    ],
    ["what is no digest", "https://example.com/v3", { sha256: ["latest"] }, "MANIFEST_DIGEST_UNUSABLE"],
  ])("are refused: %s", async (_, url, trust, code) => {
    await expect(read(url, trust)).rejects.toMatchObject({ code });
  });
});
