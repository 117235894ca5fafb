// The operations of the API, in the order of the description. routes.ts adds them to the
// application, openapi.ts describes them.
import { feedOperations } from "./feed-operations.ts";
import { installationOperations } from "./installation-operations.ts";
import type { ApiOperation } from "./operation.ts";
import { policyOperations } from "./policy-operations.ts";
import { recordOperations } from "./record-operations.ts";

/** All operations. */
export const operations: readonly ApiOperation[] = [
  ...installationOperations,
  ...policyOperations,
  ...recordOperations,
  ...feedOperations,
];
