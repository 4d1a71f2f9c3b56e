import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { v3Uid } from "./v3-uid.ts";

const STORED = "01020304-0506-4708-890a-0b0c0d0e0f10";

describe("the UID of a v3 resource", () => {
  it.each(["v3.15.0", "3.22.2", "v3.27", "v3.27.5"])("is the stored object's own before v3.28: %s", (version) => {
    expect(v3Uid(STORED, version)).toBe(STORED);
  });

  it.each(["v3.28", "v3.28.0-0.dev", "v3.28.5", "3.31.3", "v4.0.0"])(
    "has every byte's bits reversed from v3.28 on, but for version and variant: %s",
    (version) => {
      expect(v3Uid(STORED, version)).toBe("8040c020-a060-4710-8950-d030b070f008");
    },
  );

  it("leads back to the stored one, and stays a UUID of the same version", () => {
    fc.assert(
      fc.property(fc.uuid(), (uid) => {
        const shown = v3Uid(uid, "v3.31.3");
        expect(v3Uid(shown, "v3.31.3")).toBe(uid);
        expect(shown[14]).toBe(uid[14]);
        expect(shown.slice(19, 21)).toBe(uid.slice(19, 21));
      }),
    );
  });

  it("refuses what is no UID or no version, instead of making one up", () => {
    expect(() => v3Uid("not-a-uid", "v3.28")).toThrow("is not a UID");
    expect(() => v3Uid(STORED, "latest")).toThrow("is not a version");
  });
});
