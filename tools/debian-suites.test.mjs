import { describe, expect, it } from "vitest";
import { mirrorsOf } from "./debian-suites.mjs";

const sources = (path, text) => new Map([[path, text]]);

describe("the mirror this system gets Debian's packages from", () => {
  it("is found in one-line sources, with the key that signs it", () => {
    const text = [
      "# deb http://old.example/debian buster main",
      "deb-src http://mirror.example/debian bookworm main",
      "deb http://mirror.example/security bookworm-security main",
      "deb [arch=arm64 signed-by=/keys/debian.gpg] http://mirror.example/debian bookworm main contrib # ours",
    ].join("\n");
    expect(mirrorsOf(sources("sources.list", text), "bookworm")).toEqual([
      {
        uri: "http://mirror.example/debian",
        options: "[signed-by=/keys/debian.gpg] ",
      },
    ]);
  });

  it("is found in stanzas", () => {
    const text = `
Types: deb
# where it was before
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/debian.gpg
`;
    expect(mirrorsOf(sources("debian.sources", text), "bookworm")).toEqual([
      {
        uri: "http://mirror.example/debian",
        options: "[signed-by=/keys/debian.gpg] ",
      },
    ]);
  });

  it("is not one that is switched off, has no component main, or is for another release", () => {
    const off = "Types: deb\nEnabled: no\nURIs: http://a.example\nSuites: bookworm\nComponents: main\n";
    expect(mirrorsOf(sources("a.sources", off), "bookworm")).toEqual([]);
    expect(mirrorsOf(sources("vendor.list", "deb http://b.example/stuff bookworm extras"), "bookworm")).toEqual([]);
    expect(mirrorsOf(sources("browser.list", "deb http://c.example/stuff stable main"), "bookworm")).toEqual([]);
    expect(mirrorsOf(new Map(), "bookworm")).toEqual([]);
  });
});
