// Deduplicates log lines about a recurring failure: logged once, again when the reason changes, and when it
// is resolved.
export interface NoticeOnce {
  begin(line: string): void
  end(): void
}

export function createNoticeOnce(onNotice: (line: string) => void, resolvedLine: string): NoticeOnce {
  let lastLine: string | undefined
  return {
    begin(line) {
      if (line !== lastLine) onNotice(line)
      lastLine = line
    },
    end() {
      if (lastLine !== undefined) onNotice(resolvedLine)
      lastLine = undefined
    },
  }
}
