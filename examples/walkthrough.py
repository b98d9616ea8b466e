"""Three operations and one read: the shortest tour.

No operation puts a body into the prompt: the two writes leave one receipt each, and the state of
the refund enters only when it is asked for.

Prints:

    save receipt: [memo:task-001] save (task_state)
    update receipt: [memo:task-001] update (task_state)
    recall context: [memo:task-001] task_state: 退款状态: 审核通过
"""

from zero_mem import MemoryStore, ZeroMemRuntime

store = MemoryStore()
runtime = ZeroMemRuntime(store)

saved = runtime.on_task_start("task-001", "用户正在申请退款，流程到第二步")
print("save receipt:", saved.to_context())

updated = runtime.on_tool_success("task-001", "退款状态: 审核通过")
print("update receipt:", updated.to_context())

print("recall context:", runtime.recall_for_prompt(["task-001"]))
