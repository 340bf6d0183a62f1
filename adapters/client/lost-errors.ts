import { A2AError } from '../../machines/protocol/errors.ts'

/** Nobody is at an agent's address. */
export function nobodyAnswers(url: string, cause?: unknown): A2AError {
  return new A2AError('Overloaded', `Nobody answers at ${url}. Is the agent running?`, { cause })
}

/** The way to an agent was lost, and is not looked for any more. */
export function wasLost(url: string, why: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was lost (${why}). Tasks go on; connect again to see them.`)
}

/** A request was cut off that cannot be sent again. */
export function cutOff(url: string, method: string): A2AError {
  const text = `The connection to ${url} was lost while ${method} was under way. Nobody knows whether the agent took it: look before you send it again.`
  return new A2AError('Overloaded', text)
}

/** The client itself closed its connection. */
export function closedHere(url: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was closed by this client.`)
}
