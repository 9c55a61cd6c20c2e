"""The texts that small pieces are deflated against: what bodies, and messages, have in common.

Part of the file format. What was stored can only be read with the very same bytes, so these
never change; a better dictionary gets a number (and an encoding) of its own. What is likeliest
to be repeated comes last, where a reference costs least.
"""

from __future__ import annotations

_RECORD = b'"provenance":{"generator":"system","origin":"foredeck","parent_refs":[]},"session":"'
_NONE = b'","source":null,"source_hash":null,'
_PIN = (
    b'{"content_hash":"","metadata_view_hash":"","object":"system_prompt:","text_hash":null,'
    b'"token":"self","version":1}'
)

BODY_1 = b"".join(
    (
        b'{"cwd":"/home/user/","harness":"pi","host_file":null,"locked":false,"nickname":null,'
        b'"parent_session":null,"session_id":"","source":null,"source_hash":null,'
        b'"system_prompt_ref":"system_prompt:","view":null}{"locked":true,"messages":[],'
        b'"tools":[{"description":"","name":"","parameters":{"type":"object","required":[],'
        b'"properties":{"type":"string","number"}}}]}',
        b'"object":null,"provenance":{"generator":"human","origin":"/foredeck name",',
        b'{"char_count":0,"file_type":"typescript","rs","go","json","py","md","ts","locked":false,'
        b'"moved_to":null,"nickname":null,"provenance":{"generator":"agent","origin":"recorded '
        b'read","recorded write","recorded edit","disk","parent_refs":["moved_from:"]},"size":null'
        b',"source":{"filesystemId":"","path":"/home/user/repo/src/","type":"filesystem"},'
        b'"source_hash":"","state":"listed","state":"deleted","state":"text","view":null}',
        b'{"locked":true,"nickname":null,"provenance":{"generator":"system","origin":"","parent_'
        b'refs":[]},"session_ref":"","source":null,"source_hash":null,"turn_count":1,"view":null}',
        b'{"args":{"content":{"$text":""},"edits":[{"newText":"","oldText":""}],"limit":,"offset":'
        b',"pattern":"","timeout":300,"path":"/home/user/","command":"cd  && npm test 2>&1 | tail '
        b'-20"},"args_display":"","chat_ref":"chat:","content":"","details":{"diff":{"$text":""},'
        b'"firstChangedLine":,"truncation":{"truncated":true}},"details":{},"details":null,'
        b'"file_pin":{"content_hash":"","metadata_view_hash":"","object":"","text_hash":"","token"'
        b':"self"},"file_pin":null,"file_refs":[],"full_output":null,"images":[],"locked":false,'
        b'"nickname":null,"position":null,"provenance":{"generator":"tool","origin":"toolcall",'
        b'"parent_refs":[]},"provider_call_id":"call_","provider_call_id":"toolu_01","source":null'
        b',"source_hash":null,"status":"fail","tool":"grep","status":"ok","tool":"write","tool":'
        b'"edit","tool":"read","tool":"bash","turn_ref":"turn:","view":null}',
        b'{"assistant":"","assistant_meta":{"api":"openai-responses","api":"anthropic-messages",'
        b'"model":"claude-opus-4.","provider":"anthropic","stopReason":"stop","stopReason":'
        b'"toolUse","timestamp":17,"usage":{"cacheRead":0,"cacheWrite":0,"cost":{"cacheRead":0,'
        b'"cacheWrite":0,"input":0,"output":0,"total":0},"input":1,"output":,"totalTokens":}},'
        b'"locked":false,"nickname":null,"others":[],',
        _RECORD + _NONE + b'"toolcall_ids":["toolu_01"],"user":null,"user_turn":1,"view":null}',
        b'{"label":"/home/user/","label":"call_","label":"toolu_01","locked":false,"nickname":null'
        b',"object":"","object_type":"file","object_type":"toolcall","ordinal":1,"pin":',
        _PIN + b"," + _RECORD + _NONE + b'"view":null}',
        b'{"acks":[],"changed_from":1,"decision":{"kind":"host","kind":"rebase","reason":"cold",'
        b'"kind":"append"},"drops":[],"inserts":[],"kept":1,"keys":[["",""],["",""],[null,""]],'
        b'"layout":"anchored","locked":false,"model":{"name":"anthropic/claude-opus-4.","window":'
        b'200000},"nickname":null,"ordinal":1,"parent":"call:","parts":[[1,"reference",[{"text":"@'
        b' toolcall_ref id=@","type":"text"}],1,1,null,""],[1,"full",null,1,1,null,""]],"policy":'
        b'"seed-window",',
        _RECORD + b'","sets":{"active+":[1],"active-":[1],"expired+":[1],"pool+":[1]}',
        b',"source":null,"source_hash":null,"state":{},"stats":{"active":5,"chars_host":1,'
        b'"chars_sent":1,"collapsed":0,"messages":1,"objects":1,"pinned":0},"system":',
        _PIN + b',"time_ms":17,"tip":"","view":null}',
    )
)
"""For the bodies of versions, in the order of their keys; 4 KB."""

MESSAGE_1 = b"".join(
    (
        b'{"content":[{"data":{"$base64":""},"mimeType":"image/png","type":"image"}],"role":"user"'
        b',"timestamp":17}{"content":"","role":"custom","bashExecution","branchSummary",'
        b'"compactionSummary","display":true}',
        b'{"api":"google-generative-ai","content":[{"text":{"$text":""},"textSignature":"","type":'
        b'"text"},{"text":"","type":"text"},{"thinking":{"$text":""},"thinkingSignature":{"$text":'
        b'""},"type":"thinking"},{"thinking":"","thinkingSignature":"reasoning_content","type":'
        b'"thinking"},{"arguments":{"newText":"","oldText":"","path":""},"id":"","name":"edit",'
        b'"type":"toolCall"},{"arguments":{"content":{"$text":""},"path":""},"id":"","name":'
        b'"write","type":"toolCall"},{"arguments":{"edits":[{"newText":{"$text":""},"oldText":"',
        b'"}],"path":""},"name":"edit"},{"arguments":{"limit":100,"offset":1,"pattern":"","path":'
        b'"/home/user/"},"id":"call_","name":"grep","name":"read","thoughtSignature":"","type":'
        b'"toolCall"},{"arguments":{"command":"cd  && npm test 2>&1 | tail -20","timeout":300},'
        b'"id":"toolu_01","name":"bash","type":"toolCall"}],"model":"gpt-5.","model":"gemini-',
        b'model":"claude-opus-4.","provider":"openai","provider":"google","provider":"anthropic",'
        b'"api":"openai-responses","api":"openai-completions","api":"anthropic-messages","content"'
        b':[],"role":"assistant","stopReason":"stop","stopReason":"toolUse","timestamp":17,"usage"'
        b':{"cacheRead":0,"cacheWrite":0,"cost":{"input":0,"output":0,"total":0},"totalTokens":}}',
        b'{"content":[{"text":"Successfully replaced text in /home/user/","type":"text"}],"details'
        b'":{"diff":{"$text":""}},"content":[{"text":{"$text":""},"type":"text"}],"isError":true,'
        b'"isError":false,"role":"toolResult","timestamp":17,"toolCallId":"call_","toolName":'
        b'"write","toolName":"edit","toolName":"read","toolCallId":"toolu_01","toolName":"bash"}',
        b'{"content":[{"text":"","type":"text"}],"role":"user","timestamp":17}',
    )
)
"""For the packed form of messages, in the order of their keys; 2.5 KB."""
