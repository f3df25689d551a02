// Focus management for elements that are removed while they have the focus.

/** Mantine's dialogs return the focus shortly after they close. */
const FOCUS_RETURN_MS = 50

/** Focuses the target if it still exists, else the page heading; nothing if another element is focused. */
export function restoreFocus(target: () => HTMLElement | null | undefined = () => null): void {
  setTimeout(() => {
    if (document.activeElement && document.activeElement !== document.body) return
    const element = target()
    const heading = document.querySelector<HTMLElement>('main h1')
    const next = element?.isConnected ? element : heading
    next?.focus()
  }, FOCUS_RETURN_MS)
}

/** Props of a button that removes its row; `adjacentRemoveButton` finds buttons by them. */
export const removeButtonProps = { 'data-removes-row': true } as const

/** The remove button of the next row, or of the previous one if there is no next. */
export function adjacentRemoveButton(button: HTMLElement): HTMLElement | null {
  const list = button.closest('ul, tbody')
  const buttons = [...(list?.querySelectorAll<HTMLElement>('[data-removes-row]') ?? [])]
  const index = buttons.indexOf(button)
  return buttons[index + 1] ?? buttons[index - 1] ?? null
}
