/**
 * The close codes that this binding uses, beside those that `ws` itself sends for frames that break RFC 6455 (1002,
 * 1007, 1009). Codes from 4000 on are ours.
 */
export const CLOSE_CODES = {
  /** A binary frame came. */
  textOnly: 1003,
  /** The client broke a rule of this binding. */
  policy: 1008,
  /** The server goes down, or is replaced; the tasks go on. */
  restart: 1012,
  /** There is no room for what has come of an unfinished message. */
  tryAgainLater: 1013,
  /** The credentials ran out. */
  unauthenticated: 4401,
  /** The client began a frame and sent no more of it for 30 seconds. */
  unfinished: 4408,
  /** The client read nothing for 30 seconds while more than 1 MiB waited for it. */
  slowReader: 4413,
  /** The client sent more frames than the rate allows, three seconds in a row. */
  tooFast: 4429
} as const
