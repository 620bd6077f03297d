-- job_submit.lua - Slurm asks railgauge how far a job may be spread before its step gets slower.
--
--   sbatch --nodes=16 --comment='railgauge: model=llama3.1-70b layout=tp=4,dp=auto' train.sbatch
--
-- As /etc/slurm/job_submit.lua with JobSubmitPlugins=lua; railgauge and the matrix are on slurmctld's
-- host.  The smallest segment whose step is within `slack` of the best is what sbatch --segment should
-- say: smaller ones slow the job, larger ones only make it wait.  The user is told; where the plugin
-- knows segment_size (Slurm 26.05's does, 24.11's does not) and `set` is true, it is set.
-- Fails open: whatever goes wrong, the job is submitted as it was.  slurmctld waits for this script, so
-- a question has `timeout` seconds, and answers are kept by job, nodes and the matrix' time.
-- Tested with Lua 5.1 and 5.4: tests/cli/lua.bats.
local ask = {
    railgauge = os.getenv("RAILGAUGE") or "/usr/local/bin/railgauge",
    matrix = os.getenv("RAILGAUGE_MATRIX") or "/etc/slurm/matrix.json",
    timeout = 0.5, -- seconds
    slack = 0.02,  -- of the step
    look = 10,     -- seconds after which the matrix' time is read again
    keep = 1000,   -- answers
    set = false,
}
local answers, kept, stamp, looked = {}, 0, nil, -ask.look

local function lines(command) -- of a program that ends in time; nil, or {} when it fails
    local pipe = io.popen("timeout " .. ask.timeout .. " " .. command .. " 2>/dev/null </dev/null")
    if not pipe then return nil end
    local got = {}
    for line in pipe:lines() do got[#got + 1] = line end
    pipe:close()
    return got
end

local function matrix_time() -- nil: there is none
    local now = os.time()
    if now - looked >= ask.look or now < looked then
        looked, stamp = now, lines("stat -c %Y.%s.%i '" .. ask.matrix .. "'")
        stamp = stamp and stamp[1]
    end
    return stamp
end

-- Words of a job are letters, digits and these; with anything else there is no question.  None of
-- them ends a quotation of the shell.
local function words(comment)
    local job = comment and comment:match("^railgauge:%s*(.+)$")
    if job and #job < 1000 and not job:find("[^%w _=,.;+-]") then return job end
end

-- Of a header and rows "seconds segment nodes", segments ascending: the first one that is good enough,
-- and how much longer the step takes on single nodes.
local function smallest(rows)
    local steps, best = {}, math.huge
    for _, row in ipairs(rows) do
        local seconds, segment = row:match("^(%d[%d.e+-]*)\t([1-9]%d*)\t")
        seconds = tonumber(seconds)
        if seconds and seconds > 0 and seconds < math.huge then
            steps[#steps + 1] = { seconds = seconds, segment = tonumber(segment) }
            best = math.min(best, seconds)
        end
    end
    for _, step in ipairs(steps) do
        if step.seconds <= best * (1 + ask.slack) then
            return { segment = step.segment, step = step.seconds, slower = steps[1].seconds / step.seconds - 1 }
        end
    end
    return {} -- no answer is an answer too: it is not asked for again
end

local function segment_of(job, nodes)
    local time = matrix_time()
    if not time then return {} end
    local key = time .. "\n" .. nodes .. "\n" .. job
    if not answers[key] then
        if kept >= ask.keep then answers, kept = {}, 0 end
        local rows = lines(string.format("'%s' nodes '%s' --segments --need %d --job '%s'",
            ask.railgauge, ask.matrix, nodes, job))
        answers[key], kept = smallest(rows or {}), kept + 1
    end
    return answers[key]
end

local function advise(desc)
    local job, nodes = words(desc.comment), tonumber(desc.min_nodes)
    if not job or not nodes or nodes < 2 or nodes > 65536 then return end -- NO_VAL is 0xfffffffe
    local found = segment_of(job, math.floor(nodes))
    if not found.segment or found.slower <= ask.slack then return end
    local mine = tonumber(desc.segment_size) or 0
    if mine > 0 and mine < 0xfffe then return end -- the user has said it
    if ask.set then desc.segment_size = found.segment end
    slurm.log_user("railgauge: a step of %.3g s with --segment=%d; scattered nodes take %.0f %% longer%s",
        found.step, found.segment, 100 * found.slower, ask.set and ", so it is set" or "") -- it formats
end

function slurm_job_submit(desc, partitions, uid)
    pcall(advise, desc)
    return slurm.SUCCESS
end

function slurm_job_modify(desc, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
