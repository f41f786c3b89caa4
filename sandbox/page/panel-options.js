// Options for the selects in the panel.

import { el } from "./dom.js";

/** Options from pairs of a value and its text. */
export const options = (pairs) => pairs.map(([value, text]) => el("option", { value, text }));

/** An option for each organization, whose value is `<data center> <ID>`. */
export const organizationOptions = (organizations) =>
  options(
    organizations.map(({ name, data_center, organization_id }) => [
      `${data_center} ${organization_id}`,
      `${name} (${data_center}/${organization_id})`,
    ]),
  );
