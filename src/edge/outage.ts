// Something that fails again and again is said once, and once more when it is over.
export interface Outage {
  begin(line: string): void
  end(): void
}

export function createOutage(onNotice: (line: string) => void, overLine: string): Outage {
  let lasts = false
  return {
    begin(line) {
      if (!lasts) onNotice(line)
      lasts = true
    },
    end() {
      if (lasts) onNotice(overLine)
      lasts = false
    },
  }
}
