/** What each exit status of `vendorctl` means. The error reference fails to print when an error uses a status that is not here. */
export const EXIT_MEANINGS: Readonly<Record<number, string>> = {
  0: "success",
  1: "failed",
  2: "changes are pending (`--detailed-exitcode`), or the state is not known (`status`)",
  3: "a check failed, or the command was refused before it changed anything",
  4: "warnings, with `--strict`",
  5: "timed out; the cluster still works on it, `vendorctl resume` continues",
  6: "a step failed and the run was rolled back (`--rollback-on-failure`)",
  7: "measured traffic exceeded `--budget`, and the run was rolled back",
  64: "the command line is wrong",
  69: "the cluster cannot be reached",
  75: "a temporary failure: run the command again",
  77: "permission denied: credentials or RBAC",
  78: "a configuration file, such as the kubeconfig, is wrong",
  130: "interrupted",
};
