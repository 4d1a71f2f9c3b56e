import { expect, it } from "vitest";
import { readOperatorConfig } from "./config.ts";

it("reads its own place and version from the environment, with the published manifest's values as defaults", () => {
  expect(readOperatorConfig({})).toMatchObject({ namespace: "vendor-operator", version: "v3.31.3", healthPort: 9440 });
  expect(
    readOperatorConfig({ NAMESPACE: "net", VENDOR_VERSION: "v3.29.0", HEALTH_PORT: "8081", POD_NAME: "p" }),
  ).toMatchObject({
    namespace: "net",
    version: "v3.29.0",
    healthPort: 8081,
  });
});

it.each([
  [{ NAMESPACE: "vendor-system" }, "OPERATOR_IN_SYSTEM_NAMESPACE"],
  [{ VENDOR_VERSION: "newest" }, "OPERATOR_CONFIG"],
  [{ HEALTH_PORT: "99999" }, "OPERATOR_CONFIG"],
])("refuses %j with a code", (env, code) => {
  expect(() => readOperatorConfig(env)).toThrow(expect.objectContaining({ code }));
});
