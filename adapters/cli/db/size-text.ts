/** A number of bytes, as in `12.3 MiB`. */
export function sizeText(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}
