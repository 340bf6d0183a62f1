/**
 * The close codes of this binding, in addition to those that `ws` sends for violations of RFC 6455 (1002, 1007, 1009).
 * Codes from 4000 on are defined by taskchart.
 */
export const CLOSE_CODES = {
  /** A binary frame arrived. */
  textOnly: 1003,
  /** The client broke a rule of this binding. */
  policy: 1008,
  /** The server stops or restarts; tasks continue. */
  restart: 1012,
  /** There is no memory left for an incomplete message. */
  tryAgainLater: 1013,
  /** The credentials expired. */
  unauthenticated: 4401,
  /** The client sent no more of an incomplete frame for 30 seconds. */
  unfinished: 4408,
  /** The client read nothing for 30 seconds while more than 1 MiB waited for it. */
  slowReader: 4413,
  /** The client sent more frames than the rate allows, three seconds in a row. */
  tooFast: 4429
} as const
