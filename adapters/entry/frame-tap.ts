/** Which way a frame goes, seen from the agent. */
export type Direction = 'in' | 'out'

/** Where somebody may listen to the frames of a server's connections. Nobody does by default. */
export interface Tap {
  /** Hears each frame, with a name for its connection. Must not throw. */
  heard: ((connection: string, direction: Direction, text: string) => void) | undefined
}

let connections = 0

/** Names a connection, once in this process. */
export function connectionName(binding: string): string {
  connections += 1
  return `${binding} ${connections}`
}
