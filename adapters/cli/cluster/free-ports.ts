import { once } from 'node:events'
import { createServer } from 'node:net'
import { CommandError } from '../command.ts'

/** The lowest free ports of 127.0.0.1 from `first` on. Throws CommandError if there are not so many. */
export async function freePorts(first: number, count: number): Promise<number[]> {
  const found: number[] = []
  for (let port = first; found.length < count; port += 1) {
    if (port > 65_535)
      throw new CommandError(`Too few ports from ${first} on are free. Choose a lower one with --port.`)
    if (await isFree(port)) found.push(port)
  }
  return found
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
