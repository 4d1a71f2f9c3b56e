import { defineErrors } from "../../kit/errors.ts";

const NO_PERMISSION = 77;

export const errors = defineErrors({
  RIGHTS_MISSING: {
    means:
      "Before its first step, a run asks the API server whether you have every right that it will need. Some are missing, and nothing was changed.",
    example: [2, "patch installations.operator.vendor.io, create secrets in kube-system", "upgrade"],
    say: (count: number, rights: string, _command: string) =>
      `${count} ${count === 1 ? "right is" : "rights are"} missing: ${rights}`,
    fix: (_count: number, _rights: string, command: string) =>
      `have an administrator apply the role that this prints: vendorctl auth can-i --list -o yaml${command && ` ${command}`}; nothing was changed`,
    exitCode: NO_PERMISSION,
  },
});
