/** The media type that A2A has for its JSON (§11.1). */
export const A2A_JSON = 'application/a2a+json'
