// Deduplicates log lines about a recurring failure: it is logged once, again when the reason changes, and
// when it is resolved.
export function createNoticeOnce(onNotice: (line: string) => void, resolvedLine: string) {
  let lastLine: string | undefined
  return {
    begin(line: string): void {
      if (line !== lastLine) onNotice(line)
      lastLine = line
    },
    end(): void {
      if (lastLine !== undefined) onNotice(resolvedLine)
      lastLine = undefined
    },
  }
}
