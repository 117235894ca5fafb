// The version of this Syncline. A test compares it with package.json.

/** As in package.json. */
export const version = "0.1.0";
