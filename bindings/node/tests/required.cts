// The types for `require`.
import sdk = require("@surehand/sdk");

export const open: Promise<sdk.Workspace> = sdk.Workspace.open(".");
