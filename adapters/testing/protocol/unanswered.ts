/** Ends a move: there was no answer that A2A knows, and that is noted. */
export class Unanswered extends Error {}

/** Ends the test of a binding: it came to its bounds. */
export class BoundReached extends Error {}
