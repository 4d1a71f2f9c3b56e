import manifest from "../../package.json" with { type: "json" };

/** Of this product: vendorctl, the operator and the agent are released together. */
export const VERSION = `v${manifest.version}`;
