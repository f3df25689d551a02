// Something that fails again and again is said once, once more when the reason changes, and when it is over.
export interface NoticeOnce {
  begin(line: string): void
  end(): void
}

export function createNoticeOnce(onNotice: (line: string) => void, overLine: string): NoticeOnce {
  let said: string | undefined
  return {
    begin(line) {
      if (line !== said) onNotice(line)
      said = line
    },
    end() {
      if (said !== undefined) onNotice(overLine)
      said = undefined
    },
  }
}
