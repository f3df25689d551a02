// The keyboard shortcuts, and a switch for them: speech input may type such keys by accident.
import { Kbd, Modal, Stack, Switch, Table } from '@mantine/core'
import { useState } from 'react'
import { areEnabled, setEnabled, shortcuts } from './shortcuts.ts'

export function KeysDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [isOn, setOn] = useState(areEnabled)
  const toggle = (isEnabled: boolean) => {
    setEnabled(isEnabled)
    setOn(isEnabled)
  }
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts">
      <Stack>
        <Table aria-label="Keyboard shortcuts" verticalSpacing={6}>
          <Table.Tbody>
            {shortcuts.map(({ keys, action }) => (
              <Table.Tr key={action}>
                <Table.Td w={96}>
                  {keys.map((key) => (
                    <Kbd key={key} mr={4}>
                      {key}
                    </Kbd>
                  ))}
                </Table.Td>
                <Table.Td>{action}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        <Switch
          label="Use keyboard shortcuts"
          checked={isOn}
          onChange={(event) => toggle(event.currentTarget.checked)}
        />
      </Stack>
    </Modal>
  )
}
