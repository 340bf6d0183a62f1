import { join, parse } from 'node:path'

/** The folder of the database of an agent's cluster, relative to the working folder: `.taskchart/cluster-countdown`. */
export function clusterFolder(file: string): string {
  return join('.taskchart', `cluster-${parse(file).name}`)
}
